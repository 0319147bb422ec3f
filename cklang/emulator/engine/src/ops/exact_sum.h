// SPDX-License-Identifier: MIT
//
// Sums of floating-point products without any rounding: a fixed-point number wide enough for every
// product, in limbs of 32 bits that are carried only at the end. The sum is rounded once.
#pragma once

#include "core/base.h"

namespace ckemu {

/// The parts of a finite binary floating-point number: (-1)^negative * significand * 2^exponent.
struct FloatParts {
  bool negative;
  u64 significand;
  int exponent;
};
template <class T>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  using Bits = u32;
  static constexpr int mantissa = 23, bias = 127, top = 255;
};
template <>
struct FloatFormat<double> {
  using Bits = u64;
  static constexpr int mantissa = 52, bias = 1023, top = 2047;
};

template <class T>
inline FloatParts parts_of(T value) {
  using Format = FloatFormat<T>;
  const u64 bits = bits_as<typename Format::Bits>(value);
  const u64 fraction = bits & ((u64{1} << Format::mantissa) - 1);
  const int field = static_cast<int>(bits >> Format::mantissa) & Format::top;
  return {.negative = (bits >> (8 * sizeof(T) - 1)) != 0,
          .significand = field != 0 ? fraction | u64{1} << Format::mantissa : fraction,
          .exponent = (field != 0 ? field : 1) - Format::bias - Format::mantissa};
}

/// Adds finite terms that are multiples of 2^lowest and less than 2^(lowest + 32 * limbs - 40); infinities
/// and NaN are noted beside.
template <int lowest, int limbs>
class ExactSum {
 public:
  void add(bool negative, unsigned __int128 significand, int exponent) {
    if (significand == 0) {
      only_negative_zeros_ &= negative;
      return;
    }
    only_negative_zeros_ = false;
    const int shift = exponent - lowest;
    i64* at = limb_ + shift / 32;
    for (; significand != 0; significand >>= 32, ++at) {
      const u64 piece = static_cast<u64>(static_cast<u32>(significand)) << (shift % 32);
      const i64 low = static_cast<u32>(piece), high = static_cast<i64>(piece >> 32);
      at[0] += negative ? -low : low;
      at[1] += negative ? -high : high;
    }
  }
  template <class T>
  void add(T value) {
    if (!finite(value)) return note(value);
    const FloatParts parts = parts_of(value);
    add(parts.negative, parts.significand, parts.exponent);
  }
  /// a * b * 2^power; infinities and NaN as IEEE multiplies them.
  template <class T>
  void add_product(T a, T b, int power = 0) {
    if (!finite(a) || !finite(b)) return note(a * b);
    const FloatParts x = parts_of(a), y = parts_of(b);
    add(x.negative != y.negative, static_cast<unsigned __int128>(x.significand) * y.significand,
        x.exponent + y.exponent + power);
  }

  /// The sum, rounded to nearest even.
  template <class T>
  T round() {
    if (nan_ || (above_ && below_)) return __builtin_bit_cast(T, quiet_nan<T>());
    if (above_ || below_) return above_ ? static_cast<T>(__builtin_inf()) : -static_cast<T>(__builtin_inf());
    const bool negative = make_magnitude();
    int top = limbs - 1;
    while (top >= 0 && limb_[top] == 0) --top;
    if (top < 0) return only_negative_zeros_ ? T(-0.0) : T(0);
    return pack<T>(negative, top);
  }

 private:
  template <class T>
  static bool finite(T value) {
    return value - value == 0;
  }
  template <class T>
  static constexpr typename FloatFormat<T>::Bits quiet_nan() {
    using Format = FloatFormat<T>;
    using Bits = typename Format::Bits;
    return Bits{Format::top} << Format::mantissa | Bits{1} << (Format::mantissa - 1);
  }
  template <class T>
  void note(T value) {
    only_negative_zeros_ = false;
    nan_ |= value != value;
    above_ |= value > 0;
    below_ |= value < 0;
  }
  /// Carries, and turns a negative sum into its magnitude; whether it was negative.
  bool make_magnitude() {
    i64 carry = 0;
    for (i64& limb : limb_) {
      limb += carry;
      carry = limb >> 32;
      limb &= 0xffffffff;
    }
    if (carry == 0) return false;
    carry = 1;  // two's complement
    for (i64& limb : limb_) {
      limb = (~limb & 0xffffffff) + carry;
      carry = limb >> 32;
      limb &= 0xffffffff;
    }
    return true;
  }
  bool bit(int position) const { return (limb_[position / 32] >> (position % 32) & 1) != 0; }
  bool any_below(int position) const {
    for (int n = 0; n < position; ++n) {
      if (n % 32 == 0 && n + 32 <= position) {
        if (limb_[n / 32] != 0) return true;
        n += 31;
      } else if (bit(n)) {
        return true;
      }
    }
    return false;
  }
  template <class T>
  T pack(bool negative, int top) {
    using Format = FloatFormat<T>;
    const int highest = 32 * top + 63 - __builtin_clzll(static_cast<u64>(limb_[top]));
    constexpr int smallest = 1 - Format::bias - Format::mantissa;  // of subnormals, above `lowest`
    int unit = highest - Format::mantissa;                         // the position of the last bit kept
    if (unit + lowest < smallest) unit = smallest - lowest;
    u64 kept = 0;
    for (int n = highest; n >= unit; --n) kept = kept << 1 | u64{bit(n)};
    if (bit(unit - 1) && ((kept & 1) != 0 || any_below(unit - 1))) ++kept;
    const double value = static_cast<double>(kept);  // at most 2^53: exact, and so is the scaling
    const T result = static_cast<T>(__builtin_scalbn(value, unit + lowest));
    return negative ? -result : result;
  }

  i64 limb_[limbs] = {};
  bool nan_ = false, above_ = false, below_ = false, only_negative_zeros_ = true;
};

/// For products of f32 under block scales, and of everything narrower: 2^-320 to 2^340.
using ExactFloatSum = ExactSum<-320, 22>;
/// For products of f64: 2^-2148 to 2^2048.
using ExactDoubleSum = ExactSum<-2176, 134>;

}  // namespace ckemu
