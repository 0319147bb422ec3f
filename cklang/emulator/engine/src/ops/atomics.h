// SPDX-License-Identifier: MIT
//
// The read-modify-write operations, as functions of the old value and the data, and how they are
// applied to memory that other threads share.
#pragma once

#include <type_traits>

#include "core/fault.h"
#include "core/lanes.h"
#include "ops/rounding.h"

namespace ckemu::atomic {

constexpr auto add = [](auto old, auto data) { return static_cast<decltype(old)>(old + data); };
constexpr auto sub = [](auto old, auto data) { return static_cast<decltype(old)>(old - data); };
constexpr auto rsub = [](auto old, auto data) { return static_cast<decltype(old)>(data - old); };
constexpr auto swap = [](auto, auto data) { return data; };
constexpr auto bit_and = [](auto old, auto data) { return old & data; };
constexpr auto bit_or = [](auto old, auto data) { return old | data; };
constexpr auto bit_xor = [](auto old, auto data) { return old ^ data; };
constexpr auto minimum = [](auto old, auto data) { return data < old ? data : old; };
constexpr auto maximum = [](auto old, auto data) { return data > old ? data : old; };
constexpr auto increment = [](auto old, auto data) { return static_cast<decltype(old)>(old >= data ? 0 : old + 1); };
constexpr auto decrement = [](auto old, auto data) {
  return static_cast<decltype(old)>(old == 0 || old > data ? data : old - 1);
};
constexpr auto sub_clamp = [](auto old, auto data) {
  return old < data ? decltype(old){0} : static_cast<decltype(old)>(old - data);
};
constexpr auto cond_sub = [](auto old, auto data) { return old < data ? old : static_cast<decltype(old)>(old - data); };
constexpr auto pk_add_f16 = [](u32 old, u32 data) {
  const u16 low = to_f16(from_f16(static_cast<u16>(old)) + from_f16(static_cast<u16>(data)));
  const u16 high = to_f16(from_f16(static_cast<u16>(old >> 16)) + from_f16(static_cast<u16>(data >> 16)));
  return u32{low} | u32{high} << 16;
};
constexpr auto pk_add_bf16 = [](u32 old, u32 data) {
  const u16 low = to_bf16(from_bf16(static_cast<u16>(old)) + from_bf16(static_cast<u16>(data)));
  const u16 high = to_bf16(from_bf16(static_cast<u16>(old >> 16)) + from_bf16(static_cast<u16>(data >> 16)));
  return u32{low} | u32{high} << 16;
};

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, u64, u32>;

/// Replaces the value at `place` by op(value, data), indivisibly; the old value.
/// Sets `changed` if memory has another value now.
template <class T, auto op>
T apply(u8* place, T data, bool& changed) {
  using Bits = BitsOf<T>;
  auto* word = reinterpret_cast<Bits*>(place);
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  Bits wanted;
  do {
    wanted = bits_as<Bits>(static_cast<T>(op(bits_as<T>(old), data)));
  } while (!__atomic_compare_exchange_n(word, &old, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  changed |= wanted != old;
  return bits_as<T>(old);
}

/// Compare-and-swap: stores `data` where `expected` was. Floats are compared as numbers: both zeros are
/// equal, and nan is nothing.
template <class T>
T compare_swap(u8* place, T expected, T data, bool& changed) {
  using Bits = BitsOf<T>;
  auto* bits = reinterpret_cast<Bits*>(place);
  Bits old = __atomic_load_n(bits, __ATOMIC_ACQUIRE);
  while (bits_as<T>(old) == expected) {
    if (!__atomic_compare_exchange_n(bits, &old, bits_as<Bits>(data), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      continue;
    changed |= old != bits_as<Bits>(data);
    break;
  }
  return bits_as<T>(old);
}

/// An address that an atomic operation on T may have.
inline void check_alignment(Wave& w, const u8* place, size_t size) {
  if (reinterpret_cast<u64>(place) % size != 0) {
    raise(w, FaultKind::Address, "atomic access to 0x%llx, which is not aligned to %zu",
          static_cast<unsigned long long>(reinterpret_cast<u64>(place)), size);
  }
}

/// One atomic operation a lane: `exchange(lane, place, changed)` acts on memory and gives the old value, which
/// goes to `result` if the instruction asks for it (sc0, glc). Where a `bounded` place is null, which is out of
/// its buffer's range, nothing happens and the old value is 0.
template <class T, bool bounded, class Find, class Exchange>
CKEMU_INLINE void exchange_lanes(Wave& w, const Code& c, u32* result, Find place_of, Exchange exchange) {
  bool changed = false;
  each_lane_once(w, [&](int l) {
    w.lane = l;
    u8* place = place_of(l);
    T old = 0;
    if (!bounded || place != nullptr) {
      check_alignment(w, place, sizeof(T));
      old = exchange(l, place, changed);
    }
    if (c.dst_kind != Kind::None) set_lane<T>(result, l, old);
  });
  w.lane = -1;
  w.counters->progress += changed;
}

template <class T, auto op, bool bounded, class Find>
CKEMU_INLINE void update_lanes(Wave& w, const Code& c, const u32* data, u32* result, Find place_of) {
  exchange_lanes<T, bounded>(w, c, result, place_of, [&](int l, u8* place, bool& changed) {
    return apply<T, op>(place, get_lane<T>(data, l), changed);
  });
}
/// The data are the new value and then the expected one.
template <class T, bool bounded, class Find>
CKEMU_INLINE void compare_swap_lanes(Wave& w, const Code& c, const u32* data, u32* result, Find place_of) {
  const u32* expected = data + sizeof(T) / 4 * kLanes;
  exchange_lanes<T, bounded>(w, c, result, place_of, [&](int l, u8* place, bool& changed) {
    return compare_swap<T>(place, get_lane<T>(expected, l), get_lane<T>(data, l), changed);
  });
}

}  // namespace ckemu::atomic

// The atomics on memory, as ROW(name, type, operation). Compare-and-swap is apart: it takes two values.
// clang-format off
#define CKEMU_BOTH_WIDTHS(ROW, name, narrow, wide, op) ROW(name, narrow, op) ROW(name##_x2, wide, op)

#define CKEMU_INTEGER_ATOMICS(ROW)                       \
  CKEMU_BOTH_WIDTHS(ROW, swap, u32, u64, swap)           \
  CKEMU_BOTH_WIDTHS(ROW, add, u32, u64, add)             \
  CKEMU_BOTH_WIDTHS(ROW, sub, u32, u64, sub)             \
  CKEMU_BOTH_WIDTHS(ROW, smin, i32, i64, minimum)        \
  CKEMU_BOTH_WIDTHS(ROW, umin, u32, u64, minimum)        \
  CKEMU_BOTH_WIDTHS(ROW, smax, i32, i64, maximum)        \
  CKEMU_BOTH_WIDTHS(ROW, umax, u32, u64, maximum)        \
  CKEMU_BOTH_WIDTHS(ROW, and, u32, u64, bit_and)         \
  CKEMU_BOTH_WIDTHS(ROW, or, u32, u64, bit_or)           \
  CKEMU_BOTH_WIDTHS(ROW, xor, u32, u64, bit_xor)         \
  CKEMU_BOTH_WIDTHS(ROW, inc, u32, u64, increment)       \
  CKEMU_BOTH_WIDTHS(ROW, dec, u32, u64, decrement)

#define CKEMU_FLOAT_ATOMICS(ROW)                         \
  ROW(add_f32, float, add)                               \
  ROW(add_f64, double, add)                              \
  ROW(min_f64, double, minimum)                          \
  ROW(max_f64, double, maximum)                          \
  ROW(pk_add_f16, u32, pk_add_f16)                       \
  ROW(pk_add_bf16, u32, pk_add_bf16)

#define CKEMU_RDNA_ATOMICS(ROW)                          \
  ROW(min_f32, float, minimum)                           \
  ROW(max_f32, float, maximum)                           \
  ROW(min_num_f32, float, minimum)                       \
  ROW(max_num_f32, float, maximum)                       \
  ROW(sub_clamp_u32, u32, sub_clamp)                     \
  ROW(cond_sub_u32, u32, cond_sub)
// clang-format on
