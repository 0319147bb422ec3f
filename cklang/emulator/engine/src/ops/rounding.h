// SPDX-License-Identifier: MIT
//
// Narrow floating-point formats: f16 and bf16 from and to f32 and f64 with one rounding.
#pragma once

#include <limits>

#include "core/lanes.h"

namespace ckemu {

/// The integer toward zero; out of range the nearest there is, and 0 for NaN.
template <class Int>
CKEMU_INLINE Int saturate(double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<Int>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<Int>::max());
  if (value != value) return 0;
  if (value <= low) return std::numeric_limits<Int>::min();
  if (value >= high) return std::numeric_limits<Int>::max();
  return static_cast<Int>(value);
}

CKEMU_INLINE float from_f16(u16 half) { return _cvtsh_ss(half); }
CKEMU_INLINE u16 to_f16(float value) { return static_cast<u16>(_cvtss_sh(value, _MM_FROUND_CUR_DIRECTION)); }

/// f64 to f32 such that a second rounding to fewer bits gives what one rounding would have given:
/// an inexact result gets an odd last bit.
CKEMU_INLINE float to_f32_odd(double value) {
  const float near = static_cast<float>(value);
  const double back = near;
  if (back == value || value != value || __builtin_isinf(near)) return near;
  u32 bits = __builtin_bit_cast(u32, near);
  if ((bits & 1) == 0) {
    const bool above = (back > value) != (value < 0);  // magnitude was rounded up
    bits += above ? ~u32{0} : 1;
  }
  return __builtin_bit_cast(float, bits);
}
CKEMU_INLINE u16 to_f16(double value) { return to_f16(to_f32_odd(value)); }

CKEMU_INLINE float from_bf16(u16 bits) { return __builtin_bit_cast(float, u32{bits} << 16); }
CKEMU_INLINE u16 to_bf16(float value) {
  const u32 bits = __builtin_bit_cast(u32, value);
  if (value != value) return static_cast<u16>(bits >> 16 | 0x40);
  return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The low halves of 8 lanes as f32, and back with the high halves zero.
CKEMU_INLINE F8v low_f16(U8v x) {
  const __m256i low = __builtin_bit_cast(__m256i, x & 0xffff);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  return __builtin_bit_cast(F8v, _mm256_cvtph_ps(packed));
}
/// The low halves as bits of f32 in which a signalling NaN stays one.
CKEMU_INLINE U8v low_f16_bits(U8v x) {
  const U8v bits = __builtin_bit_cast(U8v, low_f16(x));
  const I8v signalling = ((x & 0x7e00) == 0x7c00) & ((x & 0x1ff) != 0);
  return choose(signalling, bits & ~0x00400000u, bits);
}
CKEMU_INLINE F8v high_f16(U8v x) { return low_f16(x >> 16); }
CKEMU_INLINE U8v pack_low_f16(F8v x) {
  const __m128i halves = _mm256_cvtps_ph(__builtin_bit_cast(__m256, x), _MM_FROUND_CUR_DIRECTION);
  return __builtin_bit_cast(U8v, _mm256_cvtepu16_epi32(halves));
}

}  // namespace ckemu
