// SPDX-License-Identifier: MIT
//
// Flat, global and scratch accesses. Global addresses are host addresses; a flat address in the
// shared or private aperture means local memory or scratch; scratch is dword-interleaved by lane.
#include "access.h"
#include "atomics.h"
#include "fault.h"
#include "handlers.h"

namespace ckemu {

namespace {

/// Per-lane 64-bit addresses of FLAT and GLOBAL instructions.
struct Addresses {
  const u32 *low, *high;  // high is null for a 32-bit offset to `base`
  u64 base;
  CKEMU_INLINE u64 operator()(int l) const {
    return base + (high != nullptr ? low[l] | u64{high[l]} << 32 : low[l]);
  }
};
Addresses addresses_of(Wave& w, const Code& c) {
  const u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  const u32* low = source_row(w, c, 0);
  if (c.src[1].kind == Kind::None) return {low, low + kLanes, offset};
  return {low, nullptr, scalar64(w, c.src[1]) + offset};
}

template <Access access>
void global_load(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  load_lanes<access>(w, w.v[c.dst], [&](int l) { return reinterpret_cast<const u8*>(at(l)); });
  count_load(w, access.bytes);
}
template <Access access>
void global_store(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  store_lanes<access>(w, source_row(w, c, 2), [&](int l) { return reinterpret_cast<u8*>(at(l)); });
  count_store(w, access.bytes);
}

constexpr size_t kScratchStride = kLanes * 4;

/// Where a lane's bytes begin, the distance of its dwords there, and the place of the first byte in its dword.
struct Place {
  u8* at;
  size_t stride = 4;
  u32 skew = 0;

  /// Whether some dword of the access lies in two of memory, which are apart.
  bool split(u32 bytes) const { return stride != 4 && skew + (bytes < 4 ? bytes : 4) > 4; }
  u8* byte(u32 number) const { return at - skew + (skew + number) / 4 * stride + (skew + number) % 4; }
};

template <Access access>
void load_from(u32* rows, int lane, const Place& place) {
  if (!place.split(access.bytes)) [[likely]] return load_lane<access>(rows, lane, place.at, place.stride);
  u8 bytes[access.bytes];
  for (u32 n = 0; n < access.bytes; ++n) bytes[n] = *place.byte(n);
  load_lane<access>(rows, lane, bytes);
}
template <Access access>
void store_to(const u32* rows, int lane, const Place& place) {
  if (!place.split(access.bytes)) [[likely]] return store_lane<access>(rows, lane, place.at, place.stride);
  u8 bytes[access.bytes];
  store_lane<access>(rows, lane, bytes);
  for (u32 n = 0; n < access.bytes; ++n) *place.byte(n) = bytes[n];
}

Place scratch_place(Wave& w, int lane, u64 offset, u32 bytes) {
  w.lane = lane;
  if (offset + bytes > w.scratch_bytes) {
    raise(w, FaultKind::Address, "scratch access at byte %llu of %u per lane",
          static_cast<unsigned long long>(offset), w.scratch_bytes);
  }
  const u32 skew = offset % 4;
  return {w.scratch + (offset / 4 * kLanes + static_cast<u32>(lane)) * 4 + skew, kScratchStride, skew};
}

struct ScratchOffsets {
  const u32* lanes;  // null without a vector offset
  i64 base;
  CKEMU_INLINE u64 operator()(int l) const {
    return static_cast<u64>(base + (lanes != nullptr ? static_cast<i64>(lanes[l]) : 0));
  }
};
ScratchOffsets scratch_offsets(Wave& w, const Code& c) {
  i64 base = c.offset;
  if (c.src[1].kind != Kind::None) base += scalar32(w, c.src[1]);
  return {c.src[0].kind == Kind::None ? nullptr : source_row(w, c, 0), base};
}

template <Access access>
void scratch_load(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  u32* rows = w.v[c.dst];
  each_lane(w, [&](int l) {
    load_from<access>(rows, l, scratch_place(w, l, at(l), access.bytes));
  });
  w.lane = -1;
}
template <Access access>
void scratch_store(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  const u32* rows = source_row(w, c, 2);
  each_lane(w, [&](int l) {
    store_to<access>(rows, l, scratch_place(w, l, at(l), access.bytes));
  });
  w.lane = -1;
}

Place flat_place(Wave& w, int lane, u64 address, u32 bytes) {
  w.lane = lane;
  const u64 aperture = address >> 32;
  if (aperture == kSharedAperture >> 32) {
    const u64 offset = static_cast<u32>(address);
    if (offset + bytes > w.lds_bytes) {
      raise(w, FaultKind::Address, "flat access at byte %llu of %u bytes of LDS",
            static_cast<unsigned long long>(offset), w.lds_bytes);
    }
    return {w.lds + offset};
  }
  if (aperture == kPrivateAperture >> 32) {
    return scratch_place(w, lane, static_cast<u32>(address), bytes);
  }
  return {reinterpret_cast<u8*>(address)};
}

template <Access access>
void flat_load(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  u32* rows = w.v[c.dst];
  each_lane(w, [&](int l) {
    load_from<access>(rows, l, flat_place(w, l, at(l), access.bytes));
  });
  w.lane = -1;
  count_load(w, access.bytes);
}
template <Access access>
void flat_store(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u32* rows = source_row(w, c, 2);
  each_lane(w, [&](int l) {
    store_to<access>(rows, l, flat_place(w, l, at(l), access.bytes));
  });
  w.lane = -1;
  w.counters->progress++;
  count_store(w, access.bytes);
}

/// Loads to LDS: lane l's value goes to m0 + offset + 4 l.
template <Access access>
void global_load_lds(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u64 base = u64{lds_base(w)} + static_cast<u64>(static_cast<i64>(c.offset));
  each_lane(w, [&](int l) {
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
  each_lane(w, [&](int l) {
    u32 value[kLanes];
    load_from<access>(value, 0, scratch_place(w, l, at(l), access.bytes));
    const u64 place = base + 4 * static_cast<u64>(l);
    if (place + 4 <= w.lds_bytes) std::memcpy(w.lds + place, value, 4);
  });
  w.lane = -1;
}

/// sc0 (glc) asks for the old value.
template <class T, auto op>
void update(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u32* data = source_row(w, c, 2);
  bool changed = false;
  each_lane(w, [&](int l) {
    u8* place = flat_place(w, l, at(l), sizeof(T)).at;
    atomic::check_alignment(w, place, sizeof(T));
    const T old = atomic::apply<T, op>(place, get_lane<T>(data, l), changed);
    if (c.dst_kind != Kind::None) set_lane<T>(w.v[c.dst], l, old);
  });
  w.lane = -1;
  w.counters->progress += changed;
}
template <class T>
void compare_swap(Wave& w, const Code& c) {  // data: new value, then the expected one
  const Addresses at = addresses_of(w, c);
  const u32* data = source_row(w, c, 2);
  constexpr int words = sizeof(T) / 4;
  bool changed = false;
  each_lane(w, [&](int l) {
    u8* place = flat_place(w, l, at(l), sizeof(T)).at;
    atomic::check_alignment(w, place, sizeof(T));
    const T old = atomic::compare_swap<T>(place, get_lane<T>(data + words * kLanes, l),
                                          get_lane<T>(data, l), changed);
    if (c.dst_kind != Kind::None) set_lane<T>(w.v[c.dst], l, old);
  });
  w.lane = -1;
  w.counters->progress += changed;
}

// clang-format off
#define LOADS(space)                                                                    \
  {Op::space##_load_ubyte, space##_load<Access{1}>},                                    \
  {Op::space##_load_sbyte, space##_load<Access{1, Extend::Sign}>},                      \
  {Op::space##_load_ushort, space##_load<Access{2}>},                                   \
  {Op::space##_load_sshort, space##_load<Access{2, Extend::Sign}>},                     \
  {Op::space##_load_dword, space##_load<Access{4}>},                                    \
  {Op::space##_load_dwordx2, space##_load<Access{8}>},                                  \
  {Op::space##_load_dwordx3, space##_load<Access{12}>},                                 \
  {Op::space##_load_dwordx4, space##_load<Access{16}>},                                 \
  {Op::space##_load_ubyte_d16, space##_load<Access{1, Extend::LowHalf}>},               \
  {Op::space##_load_ubyte_d16_hi, space##_load<Access{1, Extend::HighHalf}>},           \
  {Op::space##_load_sbyte_d16, space##_load<Access{1, Extend::SignLow}>},               \
  {Op::space##_load_sbyte_d16_hi, space##_load<Access{1, Extend::SignHigh}>},           \
  {Op::space##_load_short_d16, space##_load<Access{2, Extend::LowHalf}>},               \
  {Op::space##_load_short_d16_hi, space##_load<Access{2, Extend::HighHalf}>},           \
  {Op::space##_store_byte, space##_store<Access{1}>},                                   \
  {Op::space##_store_byte_d16_hi, space##_store<Access{1, Extend::HighHalf}>},          \
  {Op::space##_store_short, space##_store<Access{2}>},                                  \
  {Op::space##_store_short_d16_hi, space##_store<Access{2, Extend::HighHalf}>},         \
  {Op::space##_store_dword, space##_store<Access{4}>},                                  \
  {Op::space##_store_dwordx2, space##_store<Access{8}>},                                \
  {Op::space##_store_dwordx3, space##_store<Access{12}>},                               \
  {Op::space##_store_dwordx4, space##_store<Access{16}>},
#define ATOMIC(name, T, op)                                \
  {Op::flat_atomic_##name, update<T, atomic::op>},         \
  {Op::global_atomic_##name, update<T, atomic::op>},

constexpr HandlerRow kRows[] = {
    LOADS(global)
    LOADS(flat)
    LOADS(scratch)
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

HandlerRows flat_handlers() { return kRows; }

}  // namespace ckemu
