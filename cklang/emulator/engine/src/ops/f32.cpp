// SPDX-License-Identifier: MIT
//
// Single-precision arithmetic. Rounding and denormals follow MXCSR, which core/execute.cpp keeps
// equal to the wave's MODE register.
#include "ops/float_ops.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr auto add = [](U8v a, U8v b) { return settle(f(a) + f(b), a, b); };
constexpr auto sub = [](U8v a, U8v b) { return settle(f(a) - f(b), a, b); };
constexpr auto subrev = [](U8v a, U8v b) { return settle(f(b) - f(a), b, a); };
constexpr auto mul = [](U8v a, U8v b) { return settle(f(a) * f(b), a, b); };
constexpr auto mul_legacy = [](U8v a, U8v b) {  // zero times anything is zero
  const I8v zero = (f(a) == 0.0f) | (f(b) == 0.0f);
  return choose(zero, U8v(0), settle(f(a) * f(b), a, b));
};
constexpr auto fused = [](U8v a, U8v b, U8v c) { return settle(__builtin_elementwise_fma(f(a), f(b), f(c)), a, b, c); };
constexpr auto unfused = [](U8v a, U8v b, U8v c) {
  const F8v product = f(a) * f(b);
  return settle(separate(product) + f(c), a, b, c);
};
constexpr auto minimum3 = [](U8v a, U8v b, U8v c) { return min_number(min_number(a, b), c); };
constexpr auto maximum3 = [](U8v a, U8v b, U8v c) { return max_number(max_number(a, b), c); };
constexpr auto median3 = [](U8v a, U8v b, U8v c) {
  const I8v nan = is_nan(a) | is_nan(b) | is_nan(c);
  const U8v low = min_number(a, b), high = max_number(a, b);
  return choose(nan, minimum3(a, b, c), max_number(low, min_number(high, c)));
};
constexpr auto trunc = [](U8v a) { return quiet(u(__builtin_elementwise_trunc(f(a)))); };
constexpr auto ceil = [](U8v a) { return quiet(u(__builtin_elementwise_ceil(f(a)))); };
constexpr auto floor = [](U8v a) { return quiet(u(__builtin_elementwise_floor(f(a)))); };
constexpr auto rndne = [](U8v a) { return quiet(u(__builtin_elementwise_roundeven(f(a)))); };
constexpr auto fract = [](U8v a) {
  const F8v part = f(a) - __builtin_elementwise_floor(f(a));
  const F8v below_one = __builtin_bit_cast(float, 0x3f7fffff);
  return choose(part > below_one, u(below_one), settle(part, a, a));
};
constexpr auto sign_of_mantissa = 0x807fffffu;
constexpr auto frexp_exp = [](U8v a) {
  const F8v scaled = f(a) * 0x1p64f;
  const I8v tiny = (a & 0x7f800000) == 0;
  const U8v exponent = choose(tiny, (u(scaled) >> 23 & 0xff) - 64, a >> 23 & 0xff) - 126;
  const I8v none = ((a & 0x7fffffff) == 0) | ((a & 0x7f800000) == 0x7f800000);
  return choose(none, U8v(0), exponent);
};
constexpr auto frexp_mant = [](U8v a) {
  const U8v normal = choose((a & 0x7f800000) == 0, u(f(a) * 0x1p64f), a);
  const I8v as_is = ((a & 0x7fffffff) == 0) | ((a & 0x7f800000) == 0x7f800000);
  return choose(as_is, quiet(a), (normal & sign_of_mantissa) | 0x3f000000);
};
constexpr auto ldexp = [](float x, i32 exponent) {
  if (x != x) return x + x;
  const int e = exponent > 600 ? 600 : exponent < -600 ? -600 : exponent;
  return static_cast<float>(x * __builtin_bit_cast(double, u64(1023 + e) << 52));
};
constexpr auto reciprocal = [](U8v a) { return settle(1.0f / f(a), a, a); };
constexpr auto root = [](U8v a) { return settle(__builtin_elementwise_sqrt(f(a)), a, a); };
constexpr auto minimum3_nan = [](U8v a, U8v b, U8v c) { return min_nan(min_nan(a, b), c); };
constexpr auto maximum3_nan = [](U8v a, U8v b, U8v c) { return max_nan(max_nan(a, b), c); };

/// The cube-map instructions: which face, and coordinates on it.
struct Cube {
  float face, s, t, major;
};
Cube cube_of(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  if (az >= ax && az >= ay) return {z < 0 ? 5.0f : 4.0f, z < 0 ? -x : x, -y, 2 * z};
  if (ay >= ax) return {y < 0 ? 3.0f : 2.0f, x, y < 0 ? -z : z, 2 * y};
  return {x < 0 ? 1.0f : 0.0f, x < 0 ? z : -z, -y, 2 * x};
}
template <float Cube::* part>
constexpr auto cube = [](float x, float y, float z) { return cube_of(x, y, z).*part; };

template <float Cube::* part>
constexpr Handler cube_handler = lane3<float, float, float, float, cube<part>>;

constexpr HandlerRow kF32Rows[] = {
    {Op::v_add_f32, map2<add>},
    {Op::v_sub_f32, map2<sub>},
    {Op::v_subrev_f32, map2<subrev>},
    {Op::v_mul_f32, map2<mul>},
    {Op::v_mul_legacy_f32, map2<mul_legacy>},
    {Op::v_min_f32, map2<min_number>},
    {Op::v_max_f32, map2<max_number>},
    {Op::v_fma_f32, map3<fused>},
    {Op::v_fmac_f32, map2_into<fused>},
    {Op::v_fmamk_f32, map3<fused>},
    {Op::v_fmaak_f32, map3<fused>},
    {Op::v_mad_f32, map3<unfused>},
    {Op::v_mac_f32, map2_into<unfused>},
    {Op::v_madmk_f32, map3<unfused>},
    {Op::v_madak_f32, map3<unfused>},
    {Op::v_min3_f32, map3<minimum3>},
    {Op::v_max3_f32, map3<maximum3>},
    {Op::v_med3_f32, map3<median3>},
    {Op::v_minimum3_f32, map3<minimum3_nan>},
    {Op::v_maximum3_f32, map3<maximum3_nan>},
    {Op::v_trunc_f32, map1<trunc>},
    {Op::v_ceil_f32, map1<ceil>},
    {Op::v_floor_f32, map1<floor>},
    {Op::v_rndne_f32, map1<rndne>},
    {Op::v_fract_f32, map1<fract>},
    {Op::v_frexp_exp_i32_f32, map1<frexp_exp>},
    {Op::v_frexp_mant_f32, map1<frexp_mant>},
    {Op::v_ldexp_f32, lane2<float, float, i32, ldexp>},
    {Op::v_rcp_f32, map1<reciprocal>},
    {Op::v_rcp_iflag_f32, map1<reciprocal>},
    {Op::v_sqrt_f32, map1<root>},
    {Op::v_cubeid_f32, cube_handler<&Cube::face>},
    {Op::v_cubesc_f32, cube_handler<&Cube::s>},
    {Op::v_cubetc_f32, cube_handler<&Cube::t>},
    {Op::v_cubema_f32, cube_handler<&Cube::major>},
};

}  // namespace

HandlerRows f32_handlers() { return kF32Rows; }

}  // namespace ckemu
