// SPDX-License-Identifier: MIT
//
// Buffer accesses through a 128-bit resource descriptor. Range checks are per dword (per element
// for narrower accesses), over the whole element: what is out of range reads 0, is not written, and
// its address is never touched.
#include "ops/atomics.h"
#include "ops/buffer.h"
#include "ops/groups.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// Whether every enabled lane is in range as a whole, so that one check serves the wave.
CKEMU_INLINE bool all_inside(const Wave& w, const Buffer& buffer, u32 bytes) {
  if (!buffer.raw()) return false;
  U8v highest = 0;
  for (int g = 0; buffer.offset != nullptr && g < 8; ++g) {
    const U8v enabled = __builtin_bit_cast(U8v, spread_mask(w.exec() >> (8 * g) & 0xff));
    highest = __builtin_elementwise_max(highest, load8(buffer.offset, g) & enabled);
  }
  const u64 last = __builtin_reduce_max(highest);
  return last + buffer.immediate + buffer.scalar + bytes <= buffer.resource.records;
}

/// As below, for elements that lie apart: each is put together for `found`, and what it changes goes back.
template <Access access, class Found>
[[gnu::noinline]] void each_byte(const Buffer& buffer, int l, Found found) {
  constexpr u32 unit = access.bytes < 4 ? access.bytes : 4;
  u8* parts[access.dwords()][unit];
  for (u32 n = 0; n < access.dwords(); ++n) {
    for (u32 b = 0; b < unit; ++b) parts[n][b] = buffer.place(l, n * unit + b, 1);
  }
  for (u32 n = 0; n < access.dwords(); ++n) {
    u8 joined[unit];
    bool inside = true;
    for (u32 b = 0; b < unit; ++b) {
      inside &= parts[n][b] != nullptr;
      joined[b] = parts[n][b] != nullptr ? *parts[n][b] : u8{0};
    }
    found(l, n, inside ? joined : nullptr);
    for (u32 b = 0; inside && b < unit; ++b) {
      if (*parts[n][b] != joined[b]) *parts[n][b] = joined[b];
    }
  }
}

/// Handles one element after the other: `found(lane, skip, place)`, place null if out of range. The result
/// may overwrite the address, so all places are found first.
template <Access access, class Found>
[[gnu::noinline]] void each_element(Wave& w, const Buffer& buffer, Found found) {
  constexpr u32 unit = access.bytes < 4 ? access.bytes : 4;
  each_lane_once(w, [&](int l) {
    w.lane = l;
    if (buffer.split(l, unit)) [[unlikely]]
      return each_byte<access>(buffer, l, found);
    u8* places[access.dwords()];
    for (u32 n = 0; n < access.dwords(); ++n) places[n] = buffer.place(l, n * unit, unit);
    for (u32 n = 0; n < access.dwords(); ++n) found(l, n, places[n]);
  });
  w.lane = -1;
}

template <Access access>
constexpr Access kElement = access.bytes < 4 ? access : Access{4};

// What is out of range moves nothing, so it is not counted either.
template <Access access>
CKEMU_INLINE void count_element_load(Wave& w) {
  w.counters->bytes_loaded += kElement<access>.bytes;
}
template <Access access>
CKEMU_INLINE void count_element_store(Wave& w) {
  w.counters->bytes_stored += kElement<access>.bytes;
}

alignas(64) constexpr u32 kNoOffsets[kLanes] = {};

/// The lanes' offsets: zeros where the instruction has none.
CKEMU_INLINE const u32* offsets_of(const Buffer& buffer) {
  return buffer.offset != nullptr ? buffer.offset : kNoOffsets;
}

template <Access access>
void load_to_lds(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  constexpr u32 size = access.bytes < 4 ? 4 : access.bytes;
  const u64 base = u64{lds_base(w)} + static_cast<u32>(c.offset);
  if (access.bytes == 4 && buffer.offset != nullptr && base + 4 * kLanes <= w.lds_bytes && all_inside(w, buffer, 4)) {
    alignas(64) u32 values[kLanes];
    load_lanes_at<Access{4}>(w, values,
                             {buffer.offset, nullptr, buffer.resource.base + buffer.scalar + buffer.immediate});
    count_load(w, 4);
    u8* to = w.lds + base;
    if (w.exec() == ~u64{0}) std::memcpy(to, values, sizeof values);
    else each_lane(w, [&](int l) { std::memcpy(to + 4 * l, &values[l], 4); });
    return;
  }
  each_element<access>(w, buffer, [&](int l, u32 n, const u8* place) {
    u32 value[kLanes] = {};
    if (place != nullptr) {
      load_lane<kElement<access>>(value, 0, place);
      count_element_load<access>(w);
    }
    const u64 to = base + u64{size} * static_cast<u32>(l) + 4 * n;
    if (to + 4 <= w.lds_bytes) std::memcpy(w.lds + to, value, 4);
  });
}

template <Access access>
void load(Wave& w, const Code& c) {
  if (c.inst->lds) return load_to_lds<access>(w, c);
  const Buffer buffer = buffer_of(w, c);
  u32* rows = w.v[c.dst];
  if (all_inside(w, buffer, access.bytes)) [[likely]] {
    count_load(w, access.bytes);
    const u8* base = reinterpret_cast<u8*>(buffer.resource.base + buffer.scalar + buffer.immediate);
    const u32* offset = offsets_of(buffer);
    if constexpr (access.bytes == 4 || access.bytes == 8) {
      load_lanes_at<access>(w, rows, {offset, nullptr, reinterpret_cast<u64>(base)});
    } else {
      load_lanes<access>(w, rows, [&](int l) { return base + offset[l]; });
    }
    return;
  }
  each_element<access>(w, buffer, [&](int l, u32 n, const u8* place) {
    if (place != nullptr) {
      load_lane<kElement<access>>(rows + n * kLanes, l, place);
      count_element_load<access>(w);
    } else {
      load_zero<kElement<access>>(rows + n * kLanes, l);
    }
  });
}

template <Access access>
void store(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  const u32* rows = source_row(w, c, 3);
  if (all_inside(w, buffer, access.bytes)) [[likely]] {
    count_store(w, access.bytes);
    u8* base = reinterpret_cast<u8*>(buffer.resource.base + buffer.scalar + buffer.immediate);
    const u32* offset = offsets_of(buffer);
    if constexpr (access.bytes == 4 || access.bytes == 8) {
      store_lanes_at<access>(w, rows, {offset, nullptr, reinterpret_cast<u64>(base)});
    } else {
      store_lanes<access>(w, rows, [&](int l) { return base + offset[l]; });
    }
    return;
  }
  each_element<access>(w, buffer, [&](int l, u32 n, u8* place) {
    if (place == nullptr) return;
    store_lane<kElement<access>>(rows + n * kLanes, l, place);
    count_element_store<access>(w);
  });
  w.counters->progress++;
}

template <class T, auto op>
void update(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  u32* data = w.v[c.src[3].index];  // and the old value
  atomic::update_lanes<T, op, true>(w, c, data, data, [&](int l) { return buffer.place(l, 0, sizeof(T)); });
}
template <class T>
void compare_swap(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  u32* data = w.v[c.src[3].index];
  atomic::compare_swap_lanes<T, true>(w, c, data, data, [&](int l) { return buffer.place(l, 0, sizeof(T)); });
}

void no_operation(Wave&, const Code&) {}  // caches are always coherent here

// clang-format off
#define ATOMIC(name, T, op) {Op::buffer_atomic_##name, update<T, atomic::op>},

constexpr HandlerRow kBufferRows[] = {
    CKEMU_ACCESSES(buffer, load, store)
    {Op::buffer_wbinvl1, no_operation},
    {Op::buffer_wbinvl1_vol, no_operation},
    {Op::buffer_invl2, no_operation},
    {Op::buffer_wbl2, no_operation},
    {Op::buffer_inv, no_operation},
    CKEMU_INTEGER_ATOMICS(ATOMIC)
    CKEMU_FLOAT_ATOMICS(ATOMIC)
    CKEMU_RDNA_ATOMICS(ATOMIC)
    {Op::buffer_atomic_csub_u32, update<u32, atomic::sub_clamp>},
    {Op::buffer_atomic_cmpswap, compare_swap<u32>},
    {Op::buffer_atomic_cmpswap_x2, compare_swap<u64>},
    {Op::buffer_atomic_cmpswap_f32, compare_swap<float>},
};
// clang-format on

}  // namespace

HandlerRows buffer_handlers() { return kBufferRows; }

}  // namespace ckemu
