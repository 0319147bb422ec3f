// SPDX-License-Identifier: MIT
//
// Products of f64: 16x16x4, and 4x4x4 in four blocks. NEG (BLGP) negates A, B, C by its bits.
#include "core/lanes.h"
#include "ops/exact_sum.h"
#include "ops/matrix.h"
#include "ops/matrix_multiply.h"

namespace ckemu {

namespace {

constexpr int kDepth = 4;

double chain(const double* a, const double* b, double c) {
  for (int k = 0; k < kDepth; ++k) c = __builtin_fma(a[k], b[k], c);
  return c;
}
double exact(const double* a, const double* b, double c) {
  ExactDoubleSum sum;
  sum.add(c);
  for (int k = 0; k < kDepth; ++k) sum.add_product(a[k], b[k]);
  return sum.round<double>();
}

void mfma_f64(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const int blocks = shape.blocks, size = shape.m, registers = size / 4;
  check_published(w, *c.inst);
  const auto sum = numerics_of(w) == Numerics::Exact ? exact : chain;
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *add = source_row(w, c, 2);
  const bool constant = c.src[2].kind == Kind::Constant;
  const u32 negated = c.inst->neg | c.inst->blgp;  // the same bits, named blgp before gfx940
  const double sign_a = (negated & 1) != 0 ? -1 : 1, sign_b = (negated & 2) != 0 ? -1 : 1;
  const double sign_c = (negated & 4) != 0 ? -1 : 1;
  double result[4][kLanes];
  for (int r = 0; r < registers; ++r) {
    for (int l = 0; l < kLanes; ++l) {
      const int j = l % size, block = l / size % blocks, i = 4 * r + l / (size * blocks);
      double left[kDepth], right[kDepth];
      for (int k = 0; k < kDepth; ++k) {
        const int group = size * (block + blocks * k);
        left[k] = sign_a * get_lane<double>(a, group + i);
        right[k] = sign_b * get_lane<double>(b, group + j);
      }
      result[r][l] = sum(left, right, sign_c * get_lane<double>(constant ? add : add + 2 * r * kLanes, l));
    }
  }
  for (int r = 0; r < registers; ++r) {
    for (int l = 0; l < kLanes; ++l) set_lane<double>(w.v[c.dst + 2 * r], l, result[r][l]);
  }
}

}  // namespace

Handler double_matrix_handler(const Inst& inst) { return inst.matrix->k == kDepth ? mfma_f64 : nullptr; }

}  // namespace ckemu
