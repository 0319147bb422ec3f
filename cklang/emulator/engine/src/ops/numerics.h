// SPDX-License-Identifier: MIT
//
// How a matrix instruction rounds: one of three rules that the user chooses for all launches.
#pragma once

#include "decode/isa.h"

namespace ckemu {

enum class Numerics : uint8_t {
  Fma,    // products are added to C in the order of K, each with one rounding
  Exact,  // the exact sum of all products and C, rounded once
  Cdna3,  // the published model of the MI300's units (arXiv 2511.10909); refused where there is none
};

/// The rule for launches from now on.
Numerics current_numerics();
void set_numerics(Numerics numerics);

/// A published model that sums groups of products in fixed point.
struct FusedModel {
  int group = 0;                   // products summed at a time; 0: there is no such model
  bool split = false;              // even and odd products are summed apart at first (8-bit floats)
  int lowest_a = 0, lowest_b = 0;  // exponents of the operands' subnormals
};

/// What of the CDNA3 model applies to an instruction.
enum class Cdna3Rule : uint8_t { Unpublished, Chain, Fused };
Cdna3Rule cdna3_rule(const MatrixShape& shape, Family family, FusedModel& model);

/// c plus the products of `a` and `b`, which are `stride` apart, by the published model: each group's
/// products are aligned to the largest and cut off after 24 fractional bits; the sum is aligned with c,
/// which keeps 24 bits, and rounded to nearest even.
float fused_sum(const FusedModel& model, const float* a, int a_stride, const float* b, int b_stride, int depth,
                float c);

}  // namespace ckemu
