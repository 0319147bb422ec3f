// SPDX-License-Identifier: MIT
//
// Doubles of eight lanes at a time. Where something special happens in one of them, a lane's own function decides.
#pragma once

#include "core/lanes.h"

namespace ckemu {

using U8w = u64 __attribute__((ext_vector_type(8)));
using I8w = i64 __attribute__((ext_vector_type(8)));
using D8v = double __attribute__((ext_vector_type(8)));

CKEMU_INLINE D8v load8_double(const u32* row, int group) {
  const U8w low = __builtin_convertvector(load8(row, group), U8w);
  const U8w high = __builtin_convertvector(load8(row + kLanes, group), U8w);
  return __builtin_bit_cast(D8v, low | high << 32);
}
/// Writes the lanes whose bit of `byte` is set.
CKEMU_INLINE void store8_double(u32* row, int group, D8v value, u32 byte) {
  const U8w bits = __builtin_bit_cast(U8w, value);
  const I8v mask = spread_mask(byte);
  const U8v low = __builtin_convertvector(bits, U8v), high = __builtin_convertvector(bits >> 32, U8v);
  store8(row, group, choose(mask, low, load8(row, group)));
  store8(row + kLanes, group, choose(mask, high, load8(row + kLanes, group)));
}
CKEMU_INLINE bool all_of(I8w mask) { return mask_bits(__builtin_convertvector(mask, I8v)) == 0xff; }

/// Calls `eight(group) -> D8v` for eight lanes at a time, and `one(lane)` for those enabled where a result is NaN.
template <class Eight, class One>
CKEMU_INLINE void each_eight(const Wave& w, u32* row, Eight eight, One one) {
  const u64 exec = w.exec();
#pragma clang loop unroll(disable)
  for (int group = 0; group < kLanes / 8; ++group) {
    const u32 byte = exec >> (8 * group) & 0xff;
    if (byte == 0) continue;
    const D8v result = eight(group);
    if (all_of(result == result)) [[likely]] {
      store8_double(row, group, result, byte);
    } else {
      for (u32 left = byte; left != 0; left &= left - 1) one(8 * group + __builtin_ctz(left));
    }
  }
}

}  // namespace ckemu
