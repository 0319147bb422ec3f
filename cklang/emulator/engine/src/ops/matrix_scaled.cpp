// SPDX-License-Identifier: MIT
//
// Products of 8-, 6- and 4-bit floats (gfx950): CBSZ names the format of A and BLGP that of B. Each
// lane holds 32 elements of one row: K-indices 32 g to 32 g + 31 of its group g of lanes, except for
// 8-bit formats, which come as 16 from the first half of K and 16 from the second. Block scales are
// bytes of exponents, one for each row and 32 elements of K.
#include "ops/matrix.h"

#include "core/fault.h"
#include "core/lanes.h"
#include "ops/exact_sum.h"
#include "ops/matrix_multiply.h"
#include "ops/mini_float.h"

namespace ckemu {

namespace {

constexpr int kPerLane = 32;
constexpr Mini kFormats[] = {Mini::FP8, Mini::BF8, Mini::FP6, Mini::BF6, Mini::FP4};

/// The values of all codes of all formats.
struct Values {
  float value[5][256] = {};
  Values() {
    for (int n = 0; n < 5; ++n) {
      const MiniFormat format = mini_format(kFormats[n]);
      for (u32 code = 0; code < 1u << format.bits; ++code) value[n][code] = static_cast<float>(from_mini(code, format));
    }
  }
};

/// Elements of one operand, as f32 at [k * size + i].
void unpack_mini(const u32* rows, int format, int size, int depth, Panel& panel) {
  static const Values values;
  const int bits = mini_format(kFormats[format]).bits;
  float* to = reinterpret_cast<float*>(panel.element);
  for (int l = 0; l < kLanes; ++l) {
    const int group = l / size;
    for (int j = 0; j < kPerLane; ++j) {
      const int at = j * bits, row = at / 32, shift = at % 32;
      u64 pair = rows[row * kLanes + l];
      if (shift + bits > 32) pair |= u64{rows[(row + 1) * kLanes + l]} << 32;
      const u32 code = static_cast<u32>(pair >> shift) & ((1u << bits) - 1);
      const int k = bits == 8 ? j / 16 * (depth / 2) + 16 * group + j % 16 : kPerLane * group + j;
      to[k * size + l % size] = values.value[format][code];
    }
  }
}

/// The scales of one operand: exponents at [k / 32 * size + i].
struct Scales {
  u8 exponent[kLanes];
  bool moderate = true;  // multiplying by them and by each other neither overflows nor underflows

  float factor(int i) const {
    return exponent[i] == 255 ? __builtin_nanf("") : static_cast<float>(power_of_two(exponent[i] - 127));
  }
};

Scales scales_of(Wave& w, const Code& c, int operand) {
  const Source& source = c.src[3 + operand];
  if (source.kind != Kind::Vgpr && source.kind != Kind::Constant) {
    raise(w, FaultKind::Instruction, "a block scale in a scalar register is not emulated");
  }
  const u32* row = source.kind == Kind::Vgpr ? w.v[source.index] : source.row;
  const u32 byte = (c.inst->op_sel >> operand & 1) | (c.inst->op_sel_hi >> operand & 1) << 1;
  Scales scales;
  for (int l = 0; l < kLanes; ++l) {  // lane l has row l % size of group l / size: the same order
    scales.exponent[l] = static_cast<u8>(row[l] >> (8 * byte));
    scales.moderate &= scales.exponent[l] >= 127 - 50 && scales.exponent[l] <= 127 + 50;
  }
  return scales;
}

void apply(const Scales& scales, int size, int depth, Panel& panel) {
  float* element = reinterpret_cast<float*>(panel.element);
  for (int k = 0; k < depth; ++k) {
    for (int i = 0; i < size; ++i) element[k * size + i] *= scales.factor(k / kPerLane * size + i);
  }
}

/// Scales of any size: every product in f64, where it is exact, and a rounding to f32 a step, or one
/// in the end.
void multiply_wide(const Panel& a, const Panel& b, const Scales& of_a, const Scales& of_b, int size, int depth,
                   bool exact, const Accumulator& acc) {
  const float *x = reinterpret_cast<const float*>(a.element), *y = reinterpret_cast<const float*>(b.element);
  alignas(64) u32 result[16 * kLanes];
  const auto scale = [](u8 exponent) { return exponent == 255 ? __builtin_nan("") : power_of_two(exponent - 127); };
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const RowPlace place = row_place(size, 0, i);
      float sum = bits_as<float>(acc.c[place.reg * acc.c_stride + place.lane + j]);
      ExactFloatSum total;
      total.add(sum);
      for (int k = 0; k < depth; ++k) {
        const int block = k / kPerLane * size;
        const double factor = scale(of_a.exponent[block + i]) * scale(of_b.exponent[block + j]);
        const double product = double(x[k * size + i]) * y[k * size + j];
        if (exact) {
          total.add(product * factor);
        } else {
          sum = static_cast<float>(__builtin_fma(product, factor, sum));
        }
      }
      result[place.reg * kLanes + place.lane + j] = bits_as<u32>(exact ? total.round<float>() : sum);
    }
  }
  std::memcpy(acc.d, result, sizeof(u32) * static_cast<size_t>(size * size));
}

void mfma_mini(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const int size = shape.m, depth = shape.k;
  check_published(w, *c.inst);
  Panel a, b;
  unpack_mini(source_row(w, c, 0), c.inst->cbsz, size, depth, a);
  unpack_mini(source_row(w, c, 1), c.inst->blgp, size, depth, b);
  const bool constant = c.src[2].kind == Kind::Constant;
  const Accumulator acc{w.v[c.dst], source_row(w, c, 2), constant ? size_t{0} : size_t{kLanes}};
  if (shape.scaled) {
    const Scales of_a = scales_of(w, c, 0), of_b = scales_of(w, c, 1);
    if (!of_a.moderate || !of_b.moderate) {
      return multiply_wide(a, b, of_a, of_b, size, depth, numerics_of(w) == Numerics::Exact, acc);
    }
    apply(of_a, size, depth, a);
    apply(of_b, size, depth, b);
  }
  if (numerics_of(w) != Numerics::Fma) return multiply_otherwise(w, *c.inst, a, b, depth, nullptr, acc);
  multiply_f32(size, a, b, depth, 1, acc);
}

}  // namespace

Handler mini_matrix_handler(const Inst& inst) { return inst.cbsz < 5 && inst.blgp < 5 ? mfma_mini : nullptr; }

}  // namespace ckemu
