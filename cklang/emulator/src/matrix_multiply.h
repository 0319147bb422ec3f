// SPDX-License-Identifier: MIT
//
// The product of two unpacked operands, shared by the kinds of matrix instructions.
#pragma once

#include "matrix_unpack.h"

namespace ckemu {

/// Where C is read and D is written.
struct Accumulator {
  u32* d;
  const u32* c;
  size_t c_stride;  // 0 if C is a constant
};

/// D = A * B + C in f32 for square blocks of `m`, one fused multiply-add a product, in order of K.
void multiply_f32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc);

/// The row of register `row` of C or D, and its lane, of element (i, j) of an m by m block.
struct ElementPlace {
  int row, lane;
};
constexpr ElementPlace element_place(int m, int i, int j) {
  if (m == 32) return {4 * (i / 8) + i % 4, 32 * (i / 4 % 2) + j};
  return {i % 4, 16 * (i / 4) + j};
}

}  // namespace ckemu
