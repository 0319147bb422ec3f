// SPDX-License-Identifier: MIT
//
// Loads and stores of dwords, 8 lanes at a time. Neighbouring lanes mostly access neighbouring memory,
// or all the same; then one vector access does for all, and a fault names the lane by its address.
#pragma once

#include "ops/access.h"

namespace ckemu {

/// The lanes' addresses: 64 bits in two rows, or one row of distances to `base`.
struct LaneAddresses {
  const u32 *low, *high;  // high is null for distances
  u64 base;
  CKEMU_INLINE u8* operator()(int l) const {
    return reinterpret_cast<u8*>(base + (high != nullptr ? low[l] | u64{high[l]} << 32 : low[l]));
  }
};

constexpr int kGroup = 8;

/// How the addresses of 8 lanes lie to each other.
enum class Spread : u8 { Any, Same, Neighbours };

CKEMU_INLINE bool all_of(I8v mask) { return mask_bits(mask) == 0xff; }

/// `bytes` is what each lane accesses.
CKEMU_INLINE Spread spread_of(const LaneAddresses& at, int group, u32 bytes) {
  const U8v low = load8(at.low, group), distance = low - low[0];
  if (at.high != nullptr) {
    const U8v high = load8(at.high, group);
    if (!all_of(high == high[0])) return Spread::Any;
  }
  const U8v steps = {0, 1, 2, 3, 4, 5, 6, 7};
  if (all_of(distance == steps * bytes) && low[0] <= ~u32{0} - kGroup * bytes) return Spread::Neighbours;
  return all_of(distance == 0) ? Spread::Same : Spread::Any;
}

/// While it lives, 8 lanes from `lane` on are accessed at once.
struct AtOnce {
  AtOnce(Wave& wave, int lane, const u8* from, u32 bytes) : w(wave) {
    w.lane = lane;
    w.group_address = reinterpret_cast<u64>(from);
    w.group_bytes = bytes;
  }
  ~AtOnce() { w.group_bytes = 0; }
  Wave& w;
};

/// One register of each of 8 lanes.
CKEMU_INLINE void load_neighbours1(u32* rows, int group, const u8* from) { store8(rows, group, load_as<U8v>(from)); }
/// Two registers of each of 8 lanes.
CKEMU_INLINE void load_neighbours2(u32* rows, int group, const u8* from) {
  U8v a = load_as<U8v>(from), b = load_as<U8v>(from + 32);
  // Loaded once each: folded into both shuffles, the two halves of a pair would be of different times.
  asm volatile("" : "+x"(a), "+x"(b));
  store8(rows, group, __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
  store8(rows + kLanes, group, __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
}
CKEMU_INLINE void store_neighbours2(const u32* rows, int group, u8* to) {
  const U8v a = load8(rows, group), b = load8(rows + kLanes, group);
  const U8v first = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  const U8v second = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  std::memcpy(to, &first, 32);
  std::memcpy(to + 32, &second, 32);
}

template <int dwords>
CKEMU_INLINE void load_group(Wave& w, u32* rows, int group, const LaneAddresses& at) {
  const int lane = kGroup * group;
  const u8* from = at(lane);
  const Spread spread = spread_of(at, group, 4 * dwords);
  if (spread == Spread::Same) {
    w.lane = lane;
    alignas(8) u32 values[dwords * kLanes];
    load_lane<Access{4 * dwords}>(values, 0, from);
    for (int n = 0; n < dwords; ++n) store8(rows + n * kLanes, group, U8v(values[n * kLanes]));
  } else if (spread == Spread::Neighbours && dwords <= 2) {
    const AtOnce once(w, lane, from, 4 * dwords);
    if constexpr (dwords == 1) load_neighbours1(rows, group, from);
    if constexpr (dwords == 2) load_neighbours2(rows, group, from);
  } else if (dwords == 4) {
    for (int l = lane; l < lane + kGroup; l += 4) {
      const u8* const places[4] = {at(l), at(l + 1), at(l + 2), at(l + 3)};
      w.lane = l;
      load_four_b128(rows, l, places);
    }
  } else {
    for (int l = lane; l < lane + kGroup; ++l) {
      const u8* place = at(l);
      w.lane = l;
      load_lane<Access{4 * dwords}>(rows, l, place);
    }
  }
}

template <int dwords>
CKEMU_INLINE void store_group(Wave& w, const u32* rows, int group, const LaneAddresses& at) {
  const int lane = kGroup * group;
  if (dwords <= 2 && spread_of(at, group, 4 * dwords) == Spread::Neighbours) {
    u8* to = at(lane);
    const AtOnce once(w, lane, to, 4 * dwords);
    if constexpr (dwords == 1) std::memcpy(to, rows + lane, 32);
    if constexpr (dwords == 2) store_neighbours2(rows, group, to);
  } else if (dwords == 4) {
    for (int l = lane; l < lane + kGroup; l += 4) {
      u8* const places[4] = {at(l), at(l + 1), at(l + 2), at(l + 3)};
      w.lane = l;
      store_four_b128(rows, l, places);
    }
  } else {
    for (int l = lane; l < lane + kGroup; ++l) {
      w.lane = l;
      store_lane<Access{4 * dwords}>(rows, l, at(l));
    }
  }
}

/// Calls `all(group)` for groups of which all lanes are enabled, `one(lane)` for the enabled lanes of others.
template <class All, class One>
CKEMU_INLINE void each_group(const Wave& w, All all, One one) {
  const u64 exec = w.exec();
#pragma clang loop unroll(disable)
  for (int group = 0; group < kLanes / kGroup; ++group) {
    const u32 byte = exec >> (kGroup * group) & 0xff;
    if (byte == 0xff) {
      all(group);
      continue;
    }
    for (u32 left = byte; left != 0; left &= left - 1) one(kGroup * group + __builtin_ctz(left));
  }
}

/// Loads every enabled lane; registers may hold the addresses.
template <Access access>
CKEMU_INLINE void load_lanes_at(Wave& w, u32* rows, const LaneAddresses& at) {
  const auto one = [&](int l) __attribute__((always_inline)) {
    const u8* from = at(l);
    w.lane = l;
    load_lane<access>(rows, l, from);
  };
  if constexpr (access.bytes >= 4) {
    each_group(
        w, [&](int group) __attribute__((always_inline)) { load_group<access.bytes / 4>(w, rows, group, at); }, one);
  } else {
    each_lane(w, one);
  }
  w.lane = -1;
}
template <Access access>
CKEMU_INLINE void store_lanes_at(Wave& w, const u32* rows, const LaneAddresses& at) {
  const auto one = [&](int l) __attribute__((always_inline)) {
    u8* to = at(l);
    w.lane = l;
    store_lane<access>(rows, l, to);
  };
  if constexpr (access.bytes >= 4) {
    each_group(
        w, [&](int group) __attribute__((always_inline)) { store_group<access.bytes / 4>(w, rows, group, at); }, one);
  } else {
    each_lane(w, one);
  }
  w.lane = -1;
  w.counters->progress++;
}

}  // namespace ckemu
