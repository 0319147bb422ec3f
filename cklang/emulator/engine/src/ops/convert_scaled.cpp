// SPDX-License-Identifier: MIT
//
// Conversions under a block scale (gfx950): the exponent field of an f32 operand is an E8M0 scale by
// which narrow values are multiplied, and through which wide ones are divided before they are
// rounded. A scale with exponent 255 is NaN. Formats without infinities saturate.
#include "core/fault.h"
#include "ops/handlers.h"
#include "ops/mini_float.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

enum class Wide : u8 { F32, F16, BF16 };

double scale_of(u32 bits) {
  const int exponent = static_cast<int>(bits >> 23 & 0xff);
  return exponent == 255 ? __builtin_nan("") : power_of_two(exponent - 127);
}

template <Wide wide>
double wide_value(const u32* rows, int lane, int n) {
  if constexpr (wide == Wide::F32) return get_lane<float>(rows + n * kLanes, lane);
  const u16 half = static_cast<u16>(rows[n / 2 * kLanes + lane] >> (16 * (n % 2)));
  return wide == Wide::F16 ? from_f16(half) : from_bf16(half);
}
template <Wide wide>
u32 wide_bits(double value) {
  if constexpr (wide == Wide::F32) return bits_as<u32>(static_cast<float>(value));
  return wide == Wide::F16 ? to_f16(value) : to_bf16(to_f32_odd(value));
}

/// `bits` bits at bit `at` of a lane's registers.
u32 field(const u32* rows, int lane, int at, int bits) {
  const u32 low = rows[at / 32 * kLanes + lane] >> (at % 32);
  const u32 high = at % 32 + bits > 32 ? rows[(at / 32 + 1) * kLanes + lane] << (32 - at % 32) : 0;
  return (low | high) & ((1u << bits) - 1);
}

/// Narrow to wide. op_sel picks the byte (or the word of 8-bit pairs) of the source, and the half of
/// the destination of a single f16, whose other half stays.
template <Mini mini, Wide wide, int count>
void widen(Wave& w, const Code& c) {
  constexpr MiniFormat format = mini_format(mini);
  const u32 *source = source_row(w, c, 0), *scales = source_row(w, c, 1);
  const u32 select = c.inst->op_sel;
  const int start = count == 32 ? 0 : count == 2 && format.bits == 8 ? 16 * (select & 1) : 8 * (select & 3);
  u32* d = w.v[c.dst];
  each_lane_once(w, [&](int l) {
    const double scale = scale_of(scales[l]);
    u32 result[count];
    for (int n = 0; n < count; ++n) {
      result[n] = wide_bits<wide>(from_mini(field(source, l, start + n * format.bits, format.bits), format) * scale);
    }
    if constexpr (wide == Wide::F32) {
      for (int n = 0; n < count; ++n) d[n * kLanes + l] = result[n];
    } else if constexpr (count == 1) {
      d[l] = (select & 8) != 0 ? (d[l] & 0xffff) | result[0] << 16 : (d[l] & 0xffff0000) | result[0];
    } else {
      for (int n = 0; n < count; n += 2) d[n / 2 * kLanes + l] = result[n] | result[n + 1] << 16;
    }
  });
}

/// The next state of the generator that decorrelates the elements of one stochastic conversion.
u32 next_random(u32 state) { return state << 1 ^ ((state >> 31) != 0 ? 197u : 0u); }
constexpr auto prng = [](u32 state) { return next_random(state); };

enum class From : u8 { One, Two, Interleaved };  // sources that hold the values

/// Wide to narrow. op_sel picks the byte (or the word of 8-bit pairs) of the destination, whose
/// other bits stay.
template <Mini mini, Wide wide, int count, bool stochastic, From from = From::One>
void narrow(Wave& w, const Code& c) {
  constexpr MiniFormat format = mini_format(mini);
  constexpr int bits = format.bits * count, scale_slot = stochastic || from != From::One ? 2 : 1;
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *scales = source_row(w, c, scale_slot);
  const u32 select = c.inst->op_sel;
  const int start = bits == 16 ? 16 * (select >> 3 & 1) : bits == 8 ? 8 * (select >> 2 & 3) : 0;
  u32* d = w.v[c.dst];
  each_lane_once(w, [&](int l) {
    const double scale = scale_of(scales[l]);
    MiniRounding rounding{.stochastic = stochastic, .saturate = (w.mode >> 23 & 1) != 0};
    if (stochastic) rounding.random = b[l];
    u64 result[(bits + 63) / 64] = {};
    for (int n = 0; n < count; ++n) {
      double value;
      if constexpr (from == From::One) value = wide_value<wide>(a, l, n);
      if constexpr (from == From::Two) value = wide_value<wide>(n == 0 ? a : b, l, 0);
      if constexpr (from == From::Interleaved) value = wide_value<wide>(n % 2 == 0 ? a : b, l, n / 2);
      const u64 code = to_mini(value / scale, format, rounding);
      const int at = n * format.bits;
      result[at / 64] |= code << (at % 64);
      if (at % 64 + format.bits > 64) result[at / 64 + 1] |= code >> (64 - at % 64);
      rounding.random = next_random(rounding.random);
    }
    if constexpr (bits <= 16) {
      const u32 mask = ((1u << bits) - 1) << start;
      d[l] = (d[l] & ~mask) | static_cast<u32>(result[0]) << start;
    } else {
      for (int n = 0; n < bits / 32; ++n) d[n * kLanes + l] = static_cast<u32>(result[n / 2] >> (32 * (n % 2)));
    }
  });
}

/// f32 to a 16-bit format with stochastic rounding.
template <int mantissa, int bias, u32 infinity>
constexpr auto stochastic16 = [](float value, u32 random) {
  constexpr MiniFormat format{16, mantissa, bias, infinity - 1, infinity, infinity | 1u << (mantissa - 1)};
  return static_cast<u16>(to_mini(value, format, {.stochastic = true, .random = random}));
};

// clang-format off
#define WIDEN(mini, MINI) \
    {Op::v_cvt_scalef32_f32_##mini, widen<Mini::MINI, Wide::F32, 1>}, \
    {Op::v_cvt_scalef32_f16_##mini, widen<Mini::MINI, Wide::F16, 1>},
#define WIDEN_PAIR(mini, MINI) \
    {Op::v_cvt_scalef32_pk_f32_##mini, widen<Mini::MINI, Wide::F32, 2>}, \
    {Op::v_cvt_scalef32_pk_f16_##mini, widen<Mini::MINI, Wide::F16, 2>}, \
    {Op::v_cvt_scalef32_pk_bf16_##mini, widen<Mini::MINI, Wide::BF16, 2>},
#define NARROW_PAIR(mini, MINI) \
    {Op::v_cvt_scalef32_pk_##mini##_f32, narrow<Mini::MINI, Wide::F32, 2, false, From::Two>}, \
    {Op::v_cvt_scalef32_pk_##mini##_f16, narrow<Mini::MINI, Wide::F16, 2, false>}, \
    {Op::v_cvt_scalef32_pk_##mini##_bf16, narrow<Mini::MINI, Wide::BF16, 2, false>},
#define STOCHASTIC(mini, MINI) \
    {Op::v_cvt_scalef32_sr_##mini##_f32, narrow<Mini::MINI, Wide::F32, 1, true>}, \
    {Op::v_cvt_scalef32_sr_##mini##_f16, narrow<Mini::MINI, Wide::F16, 1, true>}, \
    {Op::v_cvt_scalef32_sr_##mini##_bf16, narrow<Mini::MINI, Wide::BF16, 1, true>},
#define SIX_BITS(mini, MINI) \
    {Op::v_cvt_scalef32_pk32_f32_##mini, widen<Mini::MINI, Wide::F32, 32>}, \
    {Op::v_cvt_scalef32_pk32_f16_##mini, widen<Mini::MINI, Wide::F16, 32>}, \
    {Op::v_cvt_scalef32_pk32_bf16_##mini, widen<Mini::MINI, Wide::BF16, 32>}, \
    {Op::v_cvt_scalef32_pk32_##mini##_f16, narrow<Mini::MINI, Wide::F16, 32, false>}, \
    {Op::v_cvt_scalef32_pk32_##mini##_bf16, narrow<Mini::MINI, Wide::BF16, 32, false>}, \
    {Op::v_cvt_scalef32_2xpk16_##mini##_f32, narrow<Mini::MINI, Wide::F32, 32, false, From::Interleaved>}, \
    {Op::v_cvt_scalef32_sr_pk32_##mini##_f32, narrow<Mini::MINI, Wide::F32, 32, true>}, \
    {Op::v_cvt_scalef32_sr_pk32_##mini##_f16, narrow<Mini::MINI, Wide::F16, 32, true>}, \
    {Op::v_cvt_scalef32_sr_pk32_##mini##_bf16, narrow<Mini::MINI, Wide::BF16, 32, true>},

constexpr HandlerRow kConvertScaledRows[] = {
    WIDEN(fp8, FP8) WIDEN(bf8, BF8)
    WIDEN_PAIR(fp8, FP8) WIDEN_PAIR(bf8, BF8) WIDEN_PAIR(fp4, FP4)
    NARROW_PAIR(fp8, FP8) NARROW_PAIR(bf8, BF8) NARROW_PAIR(fp4, FP4)
    STOCHASTIC(fp8, FP8) STOCHASTIC(bf8, BF8)
    {Op::v_cvt_scalef32_sr_pk_fp4_f32, narrow<Mini::FP4, Wide::F32, 2, true>},
    {Op::v_cvt_scalef32_sr_pk_fp4_f16, narrow<Mini::FP4, Wide::F16, 2, true>},
    {Op::v_cvt_scalef32_sr_pk_fp4_bf16, narrow<Mini::FP4, Wide::BF16, 2, true>},
    SIX_BITS(fp6, FP6) SIX_BITS(bf6, BF6)
    {Op::v_cvt_sr_f16_f32, lane2<u16, float, u32, stochastic16<10, 15, 0x7c00>>},
    {Op::v_cvt_sr_bf16_f32, lane2<u16, float, u32, stochastic16<7, 127, 0x7f80>>},
    {Op::v_prng_b32, lane1<u32, u32, prng>},
};
// clang-format on

}  // namespace

HandlerRows convert_scaled_handlers() { return kConvertScaledRows; }

}  // namespace ckemu
