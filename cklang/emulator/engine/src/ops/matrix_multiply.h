// SPDX-License-Identifier: MIT
//
// The product of two unpacked operands, shared by the kinds of matrix instructions.
#pragma once

#include "ops/matrix_unpack.h"
#include "ops/numerics.h"

namespace ckemu {

/// Where C is read and D is written.
struct Accumulator {
  u32* d;
  const u32* c;
  size_t c_stride;  // 0 if C is a constant
};

/// The panels of one product, of several that are added to an accumulator one after the other.
struct Step {
  const u32 *a, *b;
};

using Multiply = void (*)(const Step* steps, int count, int depth, int blocks, const Accumulator& acc);

/// The loops for one width of vectors, by whether blocks are of 32 rather than 16.
struct MatrixKernels {
  void (*unpack)(Type type, const u32* rows, const PanelShape& shape, Panel& panel);
  Multiply f32[2], i32[2];
  void (*unpack_fp8)(const u32* rows, const PanelShape& shape, const Fp8Table& table, Panel& panel);
};
/// Those for AVX-512.
const MatrixKernels& wide_matrix_kernels();

/// The elements of A or B, whose rows are `rows`, as f32 (or i32).
void unpack_operand(const Wave& wave, Type type, const u32* rows, const PanelShape& shape, Panel& panel);

/// D = A * B + C in f32 for square blocks of `m`, one fused multiply-add a product, in order of K.
void multiply_f32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc);

/// The same of integers, which wrap around.
void multiply_i32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc);

/// D += A * B of square blocks of `size` with a sparse A, of which `stored` elements a row are given.
void multiply_picked(bool integer, const Panel& a, const Panel& b, const u8* picks, int size, int stored,
                     const Accumulator& acc);

/// Where row `i` of a block of C or D lies: its register, and the lane of its first element.
struct RowPlace {
  int reg, lane;
};
CKEMU_INLINE constexpr RowPlace row_place(int size, int block, int i) {
  if (size == 32) return {16 * block + 4 * (i / 8) + i % 4, 32 * (i / 4 % 2)};
  if (size == 16) return {4 * block + i % 4, 16 * (i / 4)};
  return {i, 4 * block};
}

/// The same product under other numerics than "fma", one element of D after the other. `picks` is null,
/// or says which row of B the stored element k of row i of A multiplies: picks[k * size + i].
void multiply_otherwise(Wave& wave, const Inst& inst, const Panel& a, const Panel& b, int depth, const u8* picks,
                        const Accumulator& acc);

/// The numerics of the launch that `wave` belongs to.
Numerics numerics_of(const Wave& wave);

/// Ends the launch if its numerics are "cdna3" and no model of the instruction is published.
void check_published(Wave& wave, const Inst& inst);

}  // namespace ckemu
