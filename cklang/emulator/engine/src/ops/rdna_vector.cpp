// SPDX-License-Identifier: MIT
//
// Vector operations that only RDNA has: minimum and maximum in both treatments of NaN, products in
// which zero wins, small dot products, conversions.
#include <cmath>

#include "core/fault.h"
#include "ops/convert_fp8.h"
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

template <auto first, auto second>
constexpr auto then = [](U8v a, U8v b, U8v c) { return second(first(a, b), c); };
template <auto least, auto most>
constexpr auto median = [](U8v a, U8v b, U8v c) {
  const I8v nan = is_nan(a) | is_nan(b) | is_nan(c);
  return choose(nan, least(least(a, b), c), most(least(a, b), least(most(a, b), c)));
};

/// The same of the f16 in the low halves.
template <auto op>
constexpr auto of_f16 = [](auto... a) { return pack_low_f16(f(op(low_f16_bits(a)...))); };

constexpr auto min_i = [](U8v a, U8v b) { return u(__builtin_elementwise_min(i(a), i(b))); };
constexpr auto max_i = [](U8v a, U8v b) { return u(__builtin_elementwise_max(i(a), i(b))); };
constexpr auto min_u = [](U8v a, U8v b) { return __builtin_elementwise_min(a, b); };
constexpr auto max_u = [](U8v a, U8v b) { return __builtin_elementwise_max(a, b); };
constexpr auto xor3 = [](U8v a, U8v b, U8v c) { return a ^ b ^ c; };

double quiet64(double a) { return a + a; }
template <bool greatest, bool nan_wins>
constexpr auto extreme64 = [](double a, double b) {
  if (a != a) return nan_wins || b != b ? quiet64(a) : b;
  if (b != b) return nan_wins ? quiet64(b) : a;
  if (a == b) return std::signbit(a) == greatest ? b : a;
  return (a < b) == greatest ? b : a;
};

// DX9: a product with a zero is zero.
constexpr auto fma_dx9 = [](U8v a, U8v b, U8v c) {
  const I8v zero = (f(a) == 0.0f) | (f(b) == 0.0f);
  return choose(zero, c, settle(__builtin_elementwise_fma(f(a), f(b), f(c)), a, b, c));
};
constexpr auto mullit = [](float a, float b, float c) {
  constexpr float least = -3.40282347e+38f;
  const bool dark = b == least || b != b || b == -__builtin_inff() || c <= 0.0f || c != c;
  return dark ? least : a * b;
};

constexpr auto fused16 = [](u16 a, u16 b, u16 c) {
  return to_f16(double(from_f16(a)) * double(from_f16(b)) + double(from_f16(c)));
};
/// Two products added one after the other to an f16 or bf16: each product and each sum is rounded.
constexpr auto dot2_f16 = [](u32 a, u32 b, u16 c) {
  const auto part = [](u32 word) { return from_f16(static_cast<u16>(word)); };
  const auto add = [&](u32 x, u32 y, float sum) { return from_f16(to_f16(sum + from_f16(to_f16(part(x) * part(y))))); };
  return to_f16(add(a >> 16, b >> 16, add(a, b, from_f16(c))));
};
constexpr auto dot2_bf16 = [](u32 a, u32 b, u16 c) {
  const auto part = [](u32 word) { return from_bf16(static_cast<u16>(word)); };
  const auto add = [&](u32 x, u32 y, float sum) {
    return from_bf16(to_bf16(sum + from_bf16(to_bf16(part(x) * part(y)))));
  };
  return to_bf16(add(a >> 16, b >> 16, add(a, b, from_bf16(c))));
};
template <bool bf8_a, bool bf8_b>
constexpr auto dot4_fp8 = [](u32 a, u32 b, float c) {
  const Fp8Kind left{.wide_exponent = bf8_a, .ocp = true, .saturate = false};
  const Fp8Kind right{.wide_exponent = bf8_b, .ocp = true, .saturate = false};
  for (int n = 0; n < 32; n += 8) c = __builtin_fmaf(from_fp8(a >> n & 0xff, left), from_fp8(b >> n & 0xff, right), c);
  return c;
};

/// Dot products of bytes or nibbles; neg says which operands are signed, clamp saturates.
template <int bits>
void dot_integers(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  const auto field = [&](u32 word, int n, int slot) -> i64 {
    const u32 raw = word << (32 - bits - bits * n);
    return (c.inst->neg >> slot & 1) != 0 ? static_cast<i32>(raw) >> (32 - bits) : static_cast<i32>(raw >> (32 - bits));
  };
  each_lane(w, [&](int l) {
    i64 sum = static_cast<i32>(e[l]);
    for (int n = 0; n < 32 / bits; ++n) sum += field(a[l], n, 0) * field(b[l], n, 1);
    d[l] = static_cast<u32>(c.inst->clamp ? saturate<i32>(static_cast<double>(sum)) : static_cast<i32>(sum));
  });
}

constexpr auto from_i16 = [](U8v a) { return u(i(a << 16) >> 16); };
constexpr auto from_u16 = [](U8v a) { return a & 0xffff; };
constexpr auto pk_i16_f32 = [](float a, float b) {
  return u32{static_cast<u16>(saturate<i16>(a))} | u32{static_cast<u16>(saturate<i16>(b))} << 16;
};
constexpr auto pk_u16_f32 = [](float a, float b) { return u32{saturate<u16>(a)} | u32{saturate<u16>(b)} << 16; };

// clang-format off
/// f32 by 8 lanes and f16, under the names of gfx11 (no suffix) or gfx12.
#define TWO(name, op) {Op::v_##name##_f32, map2<op>}, {Op::v_##name##_f16, map2<of_f16<op>>},
#define THREE(name, op) {Op::v_##name##_f32, map3<op>}, {Op::v_##name##_f16, map3<of_f16<op>>},

constexpr HandlerRow kRdnaVectorRows[] = {
    TWO(min_num, min_num) TWO(max_num, max_num) TWO(minimum, min_nan) TWO(maximum, max_nan)
    {Op::v_min_num_f64, lane2<double, double, double, extreme64<false, false>>},
    {Op::v_max_num_f64, lane2<double, double, double, extreme64<true, false>>},
    {Op::v_minimum_f64, lane2<double, double, double, extreme64<false, true>>},
    {Op::v_maximum_f64, lane2<double, double, double, extreme64<true, true>>},
    THREE(min3_num, (then<min_num, min_num>)) THREE(max3_num, (then<max_num, max_num>))
    THREE(med3_num, (median<min_num, max_num>))
    {Op::v_minimum3_f16, map3<of_f16<then<min_nan, min_nan>>>},
    {Op::v_maximum3_f16, map3<of_f16<then<max_nan, max_nan>>>},
    THREE(minmax, (then<min_number, max_number>)) THREE(maxmin, (then<max_number, min_number>))
    THREE(minmax_num, (then<min_num, max_num>)) THREE(maxmin_num, (then<max_num, min_num>))
    THREE(minimummaximum, (then<min_nan, max_nan>)) THREE(maximumminimum, (then<max_nan, min_nan>))
    {Op::v_minmax_i32, map3<then<min_i, max_i>>},
    {Op::v_maxmin_i32, map3<then<max_i, min_i>>},
    {Op::v_minmax_u32, map3<then<min_u, max_u>>},
    {Op::v_maxmin_u32, map3<then<max_u, min_u>>},
    {Op::v_xor3_b32, map3<xor3>},
    {Op::v_fma_dx9_zero_f32, map3<fma_dx9>},
    {Op::v_fmac_dx9_zero_f32, map2_into<fma_dx9>},
    {Op::v_mullit_f32, lane3<float, float, float, float, mullit>},
    {Op::v_fmac_f16, lane2_into<u16, u16, u16, fused16>},
    {Op::v_dot2_f16_f16, lane3<u16, u32, u32, u16, dot2_f16>},
    {Op::v_dot2_bf16_bf16, lane3<u16, u32, u32, u16, dot2_bf16>},
    {Op::v_dot4_f32_fp8_fp8, lane3<float, u32, u32, float, dot4_fp8<false, false>>},
    {Op::v_dot4_f32_fp8_bf8, lane3<float, u32, u32, float, dot4_fp8<false, true>>},
    {Op::v_dot4_f32_bf8_fp8, lane3<float, u32, u32, float, dot4_fp8<true, false>>},
    {Op::v_dot4_f32_bf8_bf8, lane3<float, u32, u32, float, dot4_fp8<true, true>>},
    {Op::v_dot4_i32_iu8, dot_integers<8>},
    {Op::v_dot8_i32_iu4, dot_integers<4>},
    {Op::v_cvt_i32_i16, map1<from_i16>},
    {Op::v_cvt_u32_u16, map1<from_u16>},
    {Op::v_cvt_pk_i16_f32, lane2<u32, float, float, pk_i16_f32>},
    {Op::v_cvt_pk_u16_f32, lane2<u32, float, float, pk_u16_f32>},
};
// clang-format on

}  // namespace

HandlerRows rdna_vector_handlers() { return kRdnaVectorRows; }

}  // namespace ckemu
