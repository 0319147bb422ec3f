// SPDX-License-Identifier: MIT
//
// 16-bit floating-point and integer operations in the low half of a lane. The high half of the
// result is zero; operations that keep it instead are named in modifiers.cpp, which also selects
// high halves (op_sel).
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

constexpr auto add = [](U8v a, U8v b) { return pack_low_f16(low_f16(a) + low_f16(b)); };
constexpr auto sub = [](U8v a, U8v b) { return pack_low_f16(low_f16(a) - low_f16(b)); };
constexpr auto subrev = [](U8v a, U8v b) { return pack_low_f16(low_f16(b) - low_f16(a)); };
constexpr auto mul = [](U8v a, U8v b) { return pack_low_f16(low_f16(a) * low_f16(b)); };
constexpr auto min_f = [](U8v a, U8v b) { return pack_low_f16(f(min_number(low_f16_bits(a), low_f16_bits(b)))); };
constexpr auto max_f = [](U8v a, U8v b) { return pack_low_f16(f(max_number(low_f16_bits(a), low_f16_bits(b)))); };
constexpr auto min3_f = [](U8v a, U8v b, U8v c) { return min_f(min_f(a, b), c); };
constexpr auto max3_f = [](U8v a, U8v b, U8v c) { return max_f(max_f(a, b), c); };
constexpr auto med3_f = [](U8v a, U8v b, U8v c) {
  const I8v nan = is_nan(u(low_f16(a))) | is_nan(u(low_f16(b))) | is_nan(u(low_f16(c)));
  return choose(nan, min3_f(a, b, c), max_f(min_f(a, b), min_f(max_f(a, b), c)));
};
constexpr auto trunc = [](U8v a) { return pack_low_f16(__builtin_elementwise_trunc(low_f16(a))); };
constexpr auto ceil = [](U8v a) { return pack_low_f16(__builtin_elementwise_ceil(low_f16(a))); };
constexpr auto floor = [](U8v a) { return pack_low_f16(__builtin_elementwise_floor(low_f16(a))); };
constexpr auto rndne = [](U8v a) { return pack_low_f16(__builtin_elementwise_roundeven(low_f16(a))); };
constexpr auto fract = [](U8v a) {
  const F8v part = low_f16(a) - __builtin_elementwise_floor(low_f16(a));
  const F8v below_one = 0x1.ffcp-1f;
  return pack_low_f16(f(choose(part > below_one, u(below_one), u(part))));
};
constexpr auto root = [](U8v a) { return pack_low_f16(__builtin_elementwise_sqrt(low_f16(a))); };
constexpr auto fused = [](u16 a, u16 b, u16 c) {
  return to_f16(double(from_f16(a)) * double(from_f16(b)) + double(from_f16(c)));
};
constexpr auto unfused = [](u16 a, u16 b, u16 c) {
  return to_f16(from_f16(to_f16(from_f16(a) * from_f16(b))) + from_f16(c));
};
constexpr auto ldexp = [](u16 a, u16 b) {
  const int e = static_cast<i16>(b), bounded = e > 200 ? 200 : e < -200 ? -200 : e;
  return to_f16(double(from_f16(a)) * bits_as<double>(u64(1023 + bounded) << 52));
};
constexpr auto frexp_exp = [](u16 a) {
  const float value = from_f16(a);
  const u32 bits = bits_as<u32>(value) & 0x7fffffff;
  return bits == 0 || bits >= 0x7f800000 ? i16{0} : static_cast<i16>((bits >> 23) - 126);
};
constexpr auto frexp_mant = [](u16 a) {
  const float value = from_f16(a);
  const u32 bits = bits_as<u32>(value);
  if ((bits & 0x7fffffff) == 0 || (bits & 0x7f800000) == 0x7f800000) return to_f16(value);
  return to_f16(bits_as<float>((bits & 0x807fffff) | 0x3f000000));
};

constexpr auto low = [](U8v a) { return a & 0xffff; };
constexpr auto low_i = [](U8v a) { return i(a << 16) >> 16; };
constexpr auto add_u = [](U8v a, U8v b) { return low(a + b); };
constexpr auto sub_u = [](U8v a, U8v b) { return low(a - b); };
constexpr auto subrev_u = [](U8v a, U8v b) { return low(b - a); };
constexpr auto mul_lo = [](U8v a, U8v b) { return low(a * b); };
constexpr auto mad = [](U8v a, U8v b, U8v c) { return low(a * b + c); };
constexpr auto lshlrev = [](U8v a, U8v b) { return low(b << (a & 15)); };
constexpr auto lshrrev = [](U8v a, U8v b) { return low(b) >> (a & 15); };
constexpr auto ashrrev = [](U8v a, U8v b) { return low(u(low_i(b) >> i(a & 15))); };
constexpr auto min_u = [](U8v a, U8v b) { return __builtin_elementwise_min(low(a), low(b)); };
constexpr auto max_u = [](U8v a, U8v b) { return __builtin_elementwise_max(low(a), low(b)); };
constexpr auto min_i = [](U8v a, U8v b) { return low(u(__builtin_elementwise_min(low_i(a), low_i(b)))); };
constexpr auto max_i = [](U8v a, U8v b) { return low(u(__builtin_elementwise_max(low_i(a), low_i(b)))); };
constexpr auto min3_u = [](U8v a, U8v b, U8v c) { return min_u(min_u(a, b), c); };
constexpr auto max3_u = [](U8v a, U8v b, U8v c) { return max_u(max_u(a, b), c); };
constexpr auto med3_u = [](U8v a, U8v b, U8v c) { return max_u(min_u(a, b), min_u(max_u(a, b), c)); };
constexpr auto min3_i = [](U8v a, U8v b, U8v c) { return min_i(min_i(a, b), c); };
constexpr auto max3_i = [](U8v a, U8v b, U8v c) { return max_i(max_i(a, b), c); };
constexpr auto med3_i = [](U8v a, U8v b, U8v c) { return max_i(min_i(a, b), min_i(max_i(a, b), c)); };
constexpr auto pack = [](U8v a, U8v b) { return low(a) | b << 16; };

template <auto op>
constexpr Handler half2 = lane2<u16, u16, u16, op>;
template <auto op>
constexpr Handler half3 = lane3<u16, u16, u16, u16, op>;

constexpr HandlerRow kHalfRows[] = {
    {Op::v_add_f16, map2<add>},
    {Op::v_sub_f16, map2<sub>},
    {Op::v_subrev_f16, map2<subrev>},
    {Op::v_mul_f16, map2<mul>},
    {Op::v_min_f16, map2<min_f>},
    {Op::v_max_f16, map2<max_f>},
    {Op::v_min3_f16, map3<min3_f>},
    {Op::v_max3_f16, map3<max3_f>},
    {Op::v_med3_f16, map3<med3_f>},
    {Op::v_fma_f16, half3<fused>},
    {Op::v_fma_legacy_f16, half3<fused>},
    {Op::v_mad_f16, half3<unfused>},
    {Op::v_mad_legacy_f16, half3<unfused>},
    {Op::v_mac_f16, lane2_into<u16, u16, u16, unfused>},
    {Op::v_trunc_f16, map1<trunc>},
    {Op::v_ceil_f16, map1<ceil>},
    {Op::v_floor_f16, map1<floor>},
    {Op::v_rndne_f16, map1<rndne>},
    {Op::v_fract_f16, map1<fract>},
    {Op::v_sqrt_f16, map1<root>},
    {Op::v_ldexp_f16, half2<ldexp>},
    {Op::v_frexp_exp_i16_f16, lane1<i16, u16, frexp_exp>},
    {Op::v_frexp_mant_f16, lane1<u16, u16, frexp_mant>},
    {Op::v_add_u16, map2<add_u>},
    {Op::v_sub_u16, map2<sub_u>},
    {Op::v_subrev_u16, map2<subrev_u>},
    {Op::v_add_i16, map2<add_u>},
    {Op::v_sub_i16, map2<sub_u>},
    {Op::v_mul_lo_u16, map2<mul_lo>},
    {Op::v_mad_u16, map3<mad>},
    {Op::v_mad_i16, map3<mad>},
    {Op::v_mad_legacy_u16, map3<mad>},
    {Op::v_mad_legacy_i16, map3<mad>},
    {Op::v_lshlrev_b16, map2<lshlrev>},
    {Op::v_lshrrev_b16, map2<lshrrev>},
    {Op::v_ashrrev_i16, map2<ashrrev>},
    {Op::v_min_u16, map2<min_u>},
    {Op::v_max_u16, map2<max_u>},
    {Op::v_min_i16, map2<min_i>},
    {Op::v_max_i16, map2<max_i>},
    {Op::v_min3_u16, map3<min3_u>},
    {Op::v_max3_u16, map3<max3_u>},
    {Op::v_med3_u16, map3<med3_u>},
    {Op::v_min3_i16, map3<min3_i>},
    {Op::v_max3_i16, map3<max3_i>},
    {Op::v_med3_i16, map3<med3_i>},
    {Op::v_pack_b32_f16, map2<pack>},
};

}  // namespace

HandlerRows half_handlers() { return kHalfRows; }

}  // namespace ckemu
