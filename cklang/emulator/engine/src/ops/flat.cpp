// SPDX-License-Identifier: MIT
//
// Flat, global and scratch accesses.
#include "ops/atomics.h"
#include "ops/flat_address.h"
#include "ops/groups.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

template <Access access>
void global_load(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  load_lanes_at<access>(w, w.v[c.dst], {at.low, at.high, at.base});
  count_load(w, access.bytes);
}
template <Access access>
void global_store(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  store_lanes_at<access>(w, source_row(w, c, 2), {at.low, at.high, at.base});
  count_store(w, access.bytes);
}

/// Dwords at the same place of every lane's scratch lie side by side, a row for each dword; null if they do
/// not, or are out of range.
template <Access access>
u32* scratch_rows(const Wave& w, const ScratchOffsets& at) {
  if (access.bytes < 4 || at.lanes != nullptr || at.base % 4 != 0 || at.base < 0) return nullptr;
  if (static_cast<u64>(at.base) + access.bytes > w.scratch_bytes) return nullptr;
  return reinterpret_cast<u32*>(w.scratch) + at.base / 4 * kLanes;
}

template <Access access>
void scratch_load(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  u32* rows = w.v[c.dst];
  if (const u32* from = scratch_rows<access>(w, at)) {
    for (int n = 0; n < access.dwords(); ++n) {
      write_lanes(w, rows + n * kLanes, [&](int g) { return load8(from + n * kLanes, g); });
    }
    return;
  }
  each_lane_once(w, [&](int l) { load_from<access>(rows, l, scratch_place(w, l, at(l), access.bytes)); });
  w.lane = -1;
}
template <Access access>
void scratch_store(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  const u32* rows = source_row(w, c, 2);
  if (u32* to = scratch_rows<access>(w, at)) {
    for (int n = 0; n < access.dwords(); ++n) {
      write_lanes(w, to + n * kLanes, [&](int g) { return load8(rows + n * kLanes, g); });
    }
    return;
  }
  each_lane_once(w, [&](int l) { store_to<access>(rows, l, scratch_place(w, l, at(l), access.bytes)); });
  w.lane = -1;
}

template <Access access>
void flat_load(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  u32* rows = w.v[c.dst];
  each_lane_once(w, [&](int l) { load_from<access>(rows, l, flat_place(w, l, at(l), access.bytes)); });
  w.lane = -1;
  count_load(w, access.bytes);
}
template <Access access>
void flat_store(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u32* rows = source_row(w, c, 2);
  each_lane_once(w, [&](int l) { store_to<access>(rows, l, flat_place(w, l, at(l), access.bytes)); });
  w.lane = -1;
  w.counters->progress++;
  count_store(w, access.bytes);
}

/// Loads to LDS: lane l's value goes to m0 + offset + 4 l.
template <Access access>
void global_load_lds(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u64 base = u64{lds_base(w)} + static_cast<u64>(static_cast<i64>(c.offset));
  each_lane_once(w, [&](int l) {
    w.lane = l;
    u32 value[access.bytes >= 4 ? access.bytes / 4 * kLanes : kLanes];
    load_lane<access>(value, 0, reinterpret_cast<const u8*>(at(l)));
    constexpr u32 size = access.bytes < 4 ? 4 : access.bytes;
    const u64 place = base + u64{size} * static_cast<u32>(l);
    if (place + size <= w.lds_bytes) store_lane<Access{size}>(value, 0, w.lds + place);
  });
  w.lane = -1;
  count_load(w, access.bytes);
}

/// The same from scratch.
template <Access access>
void scratch_load_lds(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  const u64 base = u64{lds_base(w)} + static_cast<u64>(static_cast<i64>(c.offset));
  each_lane_once(w, [&](int l) {
    u32 value[kLanes];
    load_from<access>(value, 0, scratch_place(w, l, at(l), access.bytes));
    const u64 place = base + 4 * static_cast<u64>(l);
    if (place + 4 <= w.lds_bytes) std::memcpy(w.lds + place, value, 4);
  });
  w.lane = -1;
}

template <class T, auto op>
void update(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  atomic::update_lanes<T, op, false>(w, c, source_row(w, c, 2), w.v[c.dst],
                                     [&](int l) { return flat_place(w, l, at(l), sizeof(T)).at; });
}
template <class T>
void compare_swap(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  atomic::compare_swap_lanes<T, false>(w, c, source_row(w, c, 2), w.v[c.dst],
                                       [&](int l) { return flat_place(w, l, at(l), sizeof(T)).at; });
}

// clang-format off
#define ATOMIC(name, T, op)                                \
  {Op::flat_atomic_##name, update<T, atomic::op>},         \
  {Op::global_atomic_##name, update<T, atomic::op>},

constexpr HandlerRow kFlatRows[] = {
    CKEMU_ACCESSES(global, global_load, global_store)
    CKEMU_ACCESSES(flat, flat_load, flat_store)
    CKEMU_ACCESSES(scratch, scratch_load, scratch_store)
    {Op::scratch_load_lds_ubyte, scratch_load_lds<Access{1}>},
    {Op::scratch_load_lds_sbyte, scratch_load_lds<Access{1, Extend::Sign}>},
    {Op::scratch_load_lds_ushort, scratch_load_lds<Access{2}>},
    {Op::scratch_load_lds_sshort, scratch_load_lds<Access{2, Extend::Sign}>},
    {Op::scratch_load_lds_dword, scratch_load_lds<Access{4}>},
    {Op::global_load_lds_ubyte, global_load_lds<Access{1}>},
    {Op::global_load_lds_sbyte, global_load_lds<Access{1, Extend::Sign}>},
    {Op::global_load_lds_ushort, global_load_lds<Access{2}>},
    {Op::global_load_lds_sshort, global_load_lds<Access{2, Extend::Sign}>},
    {Op::global_load_lds_dword, global_load_lds<Access{4}>},
    {Op::global_load_lds_dwordx3, global_load_lds<Access{12}>},
    {Op::global_load_lds_dwordx4, global_load_lds<Access{16}>},
    CKEMU_INTEGER_ATOMICS(ATOMIC)
    CKEMU_FLOAT_ATOMICS(ATOMIC)
    CKEMU_RDNA_ATOMICS(ATOMIC)
    {Op::global_atomic_csub_u32, update<u32, atomic::sub_clamp>},
    {Op::flat_atomic_cmpswap, compare_swap<u32>},
    {Op::global_atomic_cmpswap, compare_swap<u32>},
    {Op::flat_atomic_cmpswap_x2, compare_swap<u64>},
    {Op::global_atomic_cmpswap_x2, compare_swap<u64>},
    {Op::flat_atomic_cmpswap_f32, compare_swap<float>},
    {Op::global_atomic_cmpswap_f32, compare_swap<float>},
};
// clang-format on

}  // namespace

HandlerRows flat_handlers() { return kFlatRows; }

}  // namespace ckemu
