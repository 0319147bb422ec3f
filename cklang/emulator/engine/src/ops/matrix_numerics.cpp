// SPDX-License-Identifier: MIT
//
// Matrix products under the numerics "exact" and "cdna3".
#include "core/fault.h"
#include "core/workgroup.h"
#include "ops/exact_sum.h"
#include "ops/matrix_multiply.h"

namespace ckemu {

namespace {

/// One element of D: row i of A's block and column j of B's.
struct Element {
  const float *a, *b;
  const u8* picks;  // of row i; null: the product is dense
  int size, depth;
  float c;
};

float exact(const Element& e) {
  ExactFloatSum sum;
  sum.add(e.c);
  for (int k = 0; k < e.depth; ++k) {
    const int row = e.picks != nullptr ? e.picks[k * e.size] : k;
    sum.add_product(e.a[k * e.size], e.b[row * e.size]);
  }
  return sum.round<float>();
}

float chain(const Element& e) {
  float sum = e.c;
  for (int k = 0; k < e.depth; ++k) sum = __builtin_fmaf(e.a[k * e.size], e.b[k * e.size], sum);
  return sum;
}

template <class Sum>
void each_element(const Panel& a, const Panel& b, int size, int depth, int b_depth, int blocks, const u8* picks,
                  const Accumulator& acc, Sum sum) {
  for (int block = 0; block < blocks; ++block) {
    const float* left = reinterpret_cast<const float*>(a.element) + block * depth * size;
    const float* right = reinterpret_cast<const float*>(b.element) + block * b_depth * size;
    for (int i = 0; i < size; ++i) {
      const RowPlace place = row_place(size, block, i);
      for (int j = 0; j < size; ++j) {
        const float c = bits_as<float>(acc.c[place.reg * acc.c_stride + place.lane + j]);
        const Element element{left + i, right + j, picks != nullptr ? picks + i : nullptr, size, depth, c};
        acc.d[place.reg * kLanes + place.lane + j] = bits_as<u32>(sum(element));
      }
    }
  }
}

}  // namespace

Numerics numerics_of(const Wave& w) { return w.group->launch->numerics; }

void check_published(Wave& w, const Inst& inst) {
  FusedModel model;
  if (numerics_of(w) != Numerics::Cdna3) return;
  if (cdna3_rule(*inst.matrix, w.program->family(), model) != Cdna3Rule::Unpublished) return;
  raise(w, FaultKind::Instruction,
        "numerics \"cdna3\": no bit-accurate model of this instruction is published (only of gfx942's dense "
        "products); \"fma\" and \"exact\" run it");
}

void multiply_otherwise(Wave& w, const Inst& inst, const Panel& a, const Panel& b, int depth, const u8* picks,
                        const Accumulator& acc) {
  const MatrixShape& shape = *inst.matrix;
  const auto each = [&](auto sum) { each_element(a, b, shape.m, depth, shape.k, shape.blocks, picks, acc, sum); };
  if (numerics_of(w) == Numerics::Exact) return each(exact);
  check_published(w, inst);
  FusedModel model;
  if (cdna3_rule(shape, w.program->family(), model) == Cdna3Rule::Chain) return each(chain);
  each([&](const Element& e) { return fused_sum(model, e.a, e.size, e.b, e.size, e.depth, e.c); });
}

}  // namespace ckemu
