// SPDX-License-Identifier: MIT
//
// Number formats of at most 8 bits as data, and their conversions from and to f64, which holds every
// value of theirs under every block scale exactly. OCP formats only: the FNUZ ones of older GPUs are
// in ops/convert_fp8.h.
#pragma once

#include "core/base.h"

namespace ckemu {

enum class Mini : u8 { FP8, BF8, FP6, BF6, FP4 };  // e4m3, e5m2, e2m3, e3m2, e2m1

struct MiniFormat {
  int bits, mantissa, bias;
  u32 largest;   // code of the largest finite magnitude
  u32 infinity;  // 0: the format has none
  u32 nan;       // 0: the format has none
  constexpr u32 sign() const { return 1u << (bits - 1); }
};
constexpr MiniFormat mini_format(Mini mini) {
  switch (mini) {
    case Mini::FP8: return {8, 3, 7, 0x7e, 0, 0x7f};
    case Mini::BF8: return {8, 2, 15, 0x7b, 0x7c, 0x7f};
    case Mini::FP6: return {6, 3, 1, 0x1f, 0, 0};
    case Mini::BF6: return {6, 2, 3, 0x1f, 0, 0};
    case Mini::FP4: return {4, 1, 1, 0x7, 0, 0};
  }
  __builtin_unreachable();
}

/// 2 to the power of `exponent`, which is in the range of normal f64 numbers.
inline double power_of_two(int exponent) { return bits_as<double>(static_cast<u64>(1023 + exponent) << 52); }

inline double from_mini(u32 code, const MiniFormat& format) {
  const u32 magnitude = code & (format.sign() - 1);
  const double sign = (code & format.sign()) != 0 ? -1.0 : 1.0;
  if (magnitude > format.largest) { return magnitude == format.infinity ? sign * __builtin_inf() : __builtin_nan(""); }
  const int exponent = static_cast<int>(magnitude >> format.mantissa);
  const u32 fraction = magnitude & ((1u << format.mantissa) - 1);
  const u32 significand = exponent != 0 ? fraction | 1u << format.mantissa : fraction;
  const int power = (exponent != 0 ? exponent : 1) - format.bias - format.mantissa;
  return sign * static_cast<double>(significand) * power_of_two(power);
}

/// How a value between two codes is rounded: to nearest even, or up by the chance of `random`.
struct MiniRounding {
  bool stochastic = false, saturate = false;
  u32 random = 0;
};

inline u32 to_mini(double value, const MiniFormat& format, MiniRounding rounding) {
  const u64 bits = bits_as<u64>(value), magnitude = bits & ~(u64{1} << 63);
  const u32 sign = (bits >> 63) != 0 ? format.sign() : 0;
  const bool saturate = rounding.saturate || format.nan == 0;
  const u32 overflow = saturate ? format.largest : format.infinity != 0 ? format.infinity : format.nan;
  constexpr u64 infinity = u64{0x7ff} << 52;
  if (magnitude > infinity) return (format.nan != 0 ? format.nan : format.largest) | sign;
  if (magnitude == infinity) return overflow | sign;
  int exponent = static_cast<int>(magnitude >> 52) - 1023 + format.bias;
  const u64 one = u64{1} << 52, significand = (magnitude & (one - 1)) | (magnitude >> 52 != 0 ? one : 0);
  int drop = 52 - format.mantissa;
  if (exponent <= 0) {
    drop += 1 - exponent;
    exponent = 0;
  }
  if (drop > 84) drop = 84;  // nothing is left of it but its being there
  using Wide = unsigned __int128;
  const Wide all = significand, fraction = all << (96 - drop) & ((Wide{1} << 96) - 1);
  const u64 whole = drop >= 64 ? 0 : significand >> drop;
  const u32 discarded = static_cast<u32>(fraction >> 64);
  const bool sticky = static_cast<u64>(fraction) != 0;
  u64 code = exponent > 0 ? (static_cast<u64>(exponent - 1) << format.mantissa) + whole : whole;
  const u32 half = 0x80000000u;
  const bool up = rounding.stochastic ? u64{discarded} + rounding.random > 0xffffffffu
                                      : discarded > half || (discarded == half && (sticky || (code & 1) != 0));
  code += up ? 1 : 0;
  return (code > format.largest ? overflow : static_cast<u32>(code)) | sign;
}

}  // namespace ckemu
