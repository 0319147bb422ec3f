// SPDX-License-Identifier: MIT
#include "ops/numerics.h"

#include "core/environment.h"
#include "ops/exact_sum.h"

namespace ckemu {

namespace {

/// A Numerics; any thread may set it.
uint8_t& chosen() {
  static uint8_t numerics = environment().numerics;
  return numerics;
}

constexpr int kBits = 24;            // fractional bits that products and c keep
constexpr int kSumBits = 31;         // and those of a sum of products when c is added
constexpr int kZeroExponent = -126;  // the exponent that a product of 0 counts with

/// The exponent below which an operand's numbers are subnormal.
int lowest_exponent(Type type) {
  switch (type) {
    case Type::F16: return -14;
    case Type::FP8: return -7;  // FNUZ, as all 8-bit floats of these GPUs
    case Type::BF8: return -15;
    default: return -126;  // bf16 and xf32
  }
}

/// (-1)^negative * significand / 2^23 * 2^exponent, normal down to 2^lowest.
struct Scaled {
  i64 significand;  // with its sign
  int exponent;
};
Scaled scaled(float value, int lowest) {
  const FloatParts parts = parts_of(value);
  i64 significand = static_cast<i64>(parts.significand);
  int exponent = parts.exponent + 23;
  if (exponent < lowest) {
    significand >>= lowest - exponent < 63 ? lowest - exponent : 63;
    exponent = lowest;
  }
  return {parts.negative ? -significand : significand, exponent};
}

/// value / 2^shift toward minus infinity; a negative shift multiplies.
i64 floor_shift(i64 value, int shift) {
  if (shift <= 0) return value * (i64{1} << -shift);
  return value >> (shift < 63 ? shift : 63);
}
i64 trunc_shift(i64 value, int shift) { return value < 0 ? -floor_shift(-value, shift) : floor_shift(value, shift); }

/// A sum in units of 2^(exponent - kBits), or what IEEE makes of its infinities and NaN.
struct Partial {
  i64 sum = 0;
  int exponent = kZeroExponent;
  float special = 0;  // not 0: infinity or NaN
};

struct Terms {
  const float *a, *b;
  int a_stride, b_stride;
};

constexpr int kMaxGroup = 16;

Partial sum_of_products(const FusedModel& model, const Terms& terms, int count) {
  i64 product[kMaxGroup];
  int exponent[kMaxGroup];
  Partial result;
  int largest = -1000;
  for (int n = 0; n < count; ++n) {
    const float x = terms.a[n * terms.a_stride], y = terms.b[n * terms.b_stride];
    product[n] = 0;
    exponent[n] = kZeroExponent;
    if (const float check = x * y; x - x != 0 || y - y != 0) {
      result.special += check;
      continue;
    }
    const Scaled left = scaled(x, model.lowest_a), right = scaled(y, model.lowest_b);
    product[n] = left.significand * right.significand;
    if (product[n] != 0) exponent[n] = left.exponent + right.exponent;
    const bool doubled = product[n] >= i64{1} << 47 || product[n] <= -(i64{1} << 47);
    if (exponent[n] + doubled >= 128) result.special += product[n] < 0 ? -__builtin_inff() : __builtin_inff();
    largest = exponent[n] > largest ? exponent[n] : largest;
  }
  result.exponent = largest == -1000 ? kZeroExponent : largest;
  for (int n = 0; n < count; ++n) { result.sum += trunc_shift(product[n], result.exponent - exponent[n] + 46 - kBits); }
  return result;
}

/// Even and odd products: each sum loses what lies below the larger one's last bit.
Partial joined(const Partial& x, const Partial& y) {
  Partial result{.exponent = x.exponent > y.exponent ? x.exponent : y.exponent, .special = x.special + y.special};
  for (const Partial* part : {&x, &y}) result.sum += floor_shift(part->sum, result.exponent - part->exponent);
  return result;
}

float add_to(const FusedModel& model, const Partial& part, float c) {
  if (part.special != 0 || c - c != 0) {
    const float sum = part.special + c;
    return sum != sum ? bits_as<float>(u32{0x7fc00000}) : sum;
  }
  const Scaled addend = scaled(c, -126);
  const int exponent = part.exponent > addend.exponent ? part.exponent : addend.exponent;
  i64 total = floor_shift(part.sum, exponent - part.exponent + kBits - kSumBits);
  // The model of 8-bit floats drops a c that is far below the sum, also a negative one.
  if (!model.split || addend.exponent >= exponent - kBits - 1) {
    total += floor_shift(addend.significand, exponent - addend.exponent + 23 - kBits) * (i64{1} << (kSumBits - kBits));
  }
  return static_cast<float>(__builtin_scalbn(static_cast<double>(total), exponent - kSumBits));
}

}  // namespace

Numerics current_numerics() { return static_cast<Numerics>(__atomic_load_n(&chosen(), __ATOMIC_RELAXED)); }
void set_numerics(Numerics numerics) { __atomic_store_n(&chosen(), static_cast<uint8_t>(numerics), __ATOMIC_RELAXED); }

Cdna3Rule cdna3_rule(const MatrixShape& shape, Family family, FusedModel& model) {
  if (shape.d == Type::I32) return Cdna3Rule::Chain;  // integers are never rounded
  if (family != Family::Cdna3 || shape.sparse) return Cdna3Rule::Unpublished;
  const bool narrow = shape.a == Type::FP8 || shape.a == Type::BF8;
  switch (shape.a) {
    case Type::F32:
    case Type::F64: return Cdna3Rule::Chain;
    case Type::XF32: model.group = 4; break;
    case Type::F16:
    case Type::BF16: model.group = 8; break;
    case Type::FP8:
    case Type::BF8: model.group = kMaxGroup; break;
    default: return Cdna3Rule::Unpublished;
  }
  model.split = narrow;
  model.lowest_a = lowest_exponent(shape.a);
  model.lowest_b = lowest_exponent(shape.b);
  return Cdna3Rule::Fused;
}

float fused_sum(const FusedModel& model, const float* a, int a_stride, const float* b, int b_stride, int depth,
                float c) {
  for (int k = 0; k < depth; k += model.group) {
    const int count = depth - k < model.group ? depth - k : model.group;
    const Terms terms{a + k * a_stride, b + k * b_stride, a_stride, b_stride};
    if (!model.split) {
      c = add_to(model, sum_of_products(model, terms, count), c);
      continue;
    }
    const Terms even{terms.a, terms.b, 2 * a_stride, 2 * b_stride};
    const Terms odd{terms.a + a_stride, terms.b + b_stride, 2 * a_stride, 2 * b_stride};
    c = add_to(model, joined(sum_of_products(model, even, count / 2), sum_of_products(model, odd, count / 2)), c);
  }
  return c;
}

}  // namespace ckemu
