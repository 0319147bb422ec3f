// SPDX-License-Identifier: MIT
//
// The four 8-bit float formats: e4m3 and e5m2, each as OCP (gfx950) and as FNUZ (older GPUs: no
// infinities, no negative zero, 0x80 is the only NaN, exponent bias one higher).
#pragma once

#include "core/base.h"

namespace ckemu {

struct Fp8Kind {
  bool wide_exponent;  // e5m2
  bool ocp;
  bool saturate;  // overflow gives the largest number instead of NaN or infinity

  constexpr int mantissa() const { return wide_exponent ? 2 : 3; }
  constexpr int bias() const { return (wide_exponent ? 15 : 7) + (ocp ? 0 : 1); }
  constexpr bool has_infinity() const { return ocp && wide_exponent; }
  /// The largest finite magnitude's code.
  constexpr u32 largest() const { return !ocp ? 0x7f : wide_exponent ? 0x7b : 0x7e; }
  constexpr u32 nan() const { return ocp ? 0x7f : 0x80; }
};

inline float from_fp8(u32 code, Fp8Kind kind) {
  const u32 magnitude = code & 0x7f;
  const bool negative = (code & 0x80) != 0;
  if (!kind.ocp && code == 0x80) return bits_as<float>(u32{0x7fc00000});
  if (kind.ocp && magnitude > kind.largest()) {
    if (kind.has_infinity() && magnitude == 0x7c) return negative ? -__builtin_inff() : __builtin_inff();
    return bits_as<float>(0x7fc00000u | (negative ? 1u << 31 : 0));
  }
  const int m = kind.mantissa();
  const int exponent = static_cast<int>(magnitude >> m);
  const u32 fraction = magnitude & ((1u << m) - 1);
  const u32 significand = exponent != 0 ? fraction | 1u << m : fraction;
  const int power = (exponent != 0 ? exponent : 1) - kind.bias() - m;
  const float scale = bits_as<float>(static_cast<u32>(127 + power) << 23);
  return (negative ? -1.0f : 1.0f) * static_cast<float>(significand) * scale;
}

/// Rounds `value`: the discarded bits, scaled to 32 bits, carry into the result when adding
/// `threshold(discarded, odd)` says so.
template <class RoundUp>
u8 to_fp8_with(float value, Fp8Kind kind, RoundUp round_up) {
  const u32 bits = bits_as<u32>(value);
  const u32 sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  const u32 nan = kind.ocp ? kind.nan() | sign : kind.nan();
  if (magnitude > 0x7f800000) return static_cast<u8>(nan);
  const u32 overflow = kind.saturate ? kind.largest() | sign : kind.has_infinity() ? 0x7c | sign : nan;
  if (magnitude == 0x7f800000) return static_cast<u8>(overflow);
  const int m = kind.mantissa();
  int exponent = static_cast<int>(magnitude >> 23) - 127 + kind.bias();
  u64 significand = (magnitude & 0x7fffff) | (magnitude >> 23 != 0 ? 0x800000 : 0);
  int drop = 23 - m;
  if (exponent <= 0) {
    drop += 1 - exponent;
    exponent = 0;
  }
  if (drop > 40) drop = 40;
  const u64 kept = significand >> drop;
  const u32 discarded = static_cast<u32>((significand << (64 - drop)) >> 32);
  const bool sticky = (significand << (64 - drop)) << 32 != 0;
  u64 code = exponent > 0 ? (static_cast<u64>(exponent - 1) << m) + kept : kept;
  code += round_up(discarded, sticky, (code & 1) != 0) ? 1 : 0;
  if (code > kind.largest()) return static_cast<u8>(overflow);
  if (code == 0 && !kind.ocp) return 0;
  return static_cast<u8>(code | sign);
}

inline u8 to_fp8(float value, Fp8Kind kind) {
  return to_fp8_with(value, kind, [](u32 discarded, bool sticky, bool odd) {
    if (discarded != 0x80000000u || sticky) return discarded >= 0x80000000u;
    return odd;
  });
}

inline u8 to_fp8_stochastic(float value, u32 random, Fp8Kind kind) {
  return to_fp8_with(value, kind,
                     [random](u32 discarded, bool, bool) { return u64{discarded} + random > 0xffffffffu; });
}

}  // namespace ckemu
