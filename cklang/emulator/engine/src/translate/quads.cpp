// SPDX-License-Identifier: MIT
//
// Between four rows of 16 lanes and the four dwords of each lane side by side, as memory has them.
#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr Evex kUnpackHigh{1, 1, 0x6a, 0}, kUnpackLowQ{1, 1, 0x6c, 1}, kUnpackHighQ{1, 1, 0x6d, 1};
u32 transposed(u32 n) { return n % 4 * 4 + n / 4; }

/// Quarter q of `to[n]` is dword n of the four vectors' quarters q.
void turn(Assembler& a, const u8 (&to)[4], const u8 (&from)[4], const u8 (&free)[4]) {
  for (int half = 0; half < 2; ++half) {
    const Evex unpack = half == 0 ? kUnpackLow : kUnpackHigh;
    a.vector(unpack, free[2 * half], from[0], from[1]);
    a.vector(unpack, free[2 * half + 1], from[2], from[3]);
  }
  for (int half = 0; half < 2; ++half) {
    a.vector(kUnpackLowQ, to[2 * half], free[2 * half], free[2 * half + 1]);
    a.vector(kUnpackHighQ, to[2 * half + 1], free[2 * half], free[2 * half + 1]);
  }
}

}  // namespace

void rows_of_lanes(Lanes& lanes, const u8 (&quads)[4], const u8 (&free)[4]) {
  turn(lanes.a, quads, quads, free);
  lanes.a.vector_load_anywhere(free[0], Mem{.constant = lanes.a.table(transposed)});
  for (const u8 row : quads) lanes.a.vector(kPermute, row, free[0], row);
}

Quads lanes_of_rows(Lanes& lanes, const u8 (&rows)[4]) {
  u8 ordered[4], free[4];
  Quads quads;
  const u8 order = lanes.fresh();
  for (u8* some : {ordered, free, quads.of_lanes}) {
    for (int n = 0; n < 4; ++n) some[n] = lanes.fresh();
  }
  lanes.a.vector_load_anywhere(order, Mem{.constant = lanes.a.table(transposed)});
  for (int n = 0; n < 4; ++n) lanes.a.vector(kPermute, ordered[n], order, rows[n]);
  turn(lanes.a, quads.of_lanes, ordered, free);
  return quads;
}

}  // namespace ckemu::translate
