// SPDX-License-Identifier: MIT
//
// Operations on 64-bit lanes: doubles, 64-bit shifts and additions.
#include <cmath>

#include "ops/double_lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr u64 kExponent = u64{0x7ff} << 52;
constexpr u64 kMantissa = (u64{1} << 52) - 1;
constexpr u64 kQuiet = u64{1} << 51;

double settle(double result, double a, double b) {
  return result != result && a == a && b == b ? bits_as<double>(kExponent | kQuiet) : result;
}
double quiet(double a) { return a != a ? bits_as<double>(bits_as<u64>(a) | kQuiet) : a; }
bool signalling(double a) { return a != a && (bits_as<u64>(a) & kQuiet) == 0; }

constexpr auto add = [](double a, double b) { return settle(a + b, a, b); };
constexpr auto mul = [](double a, double b) { return settle(a * b, a, b); };
constexpr auto fused = [](double a, double b, double c) {
  const double result = __builtin_fma(a, b, c);
  return c == c ? settle(result, a, b) : result;
};
constexpr auto min_f = [](double a, double b) {
  if (signalling(a)) return quiet(a);
  if (signalling(b) || a != a) return quiet(b);
  if (b != b) return a;
  return a < b || (a == b && __builtin_signbit(a)) ? a : b;
};
constexpr auto max_f = [](double a, double b) {
  if (signalling(a)) return quiet(a);
  if (signalling(b) || a != a) return quiet(b);
  if (b != b) return a;
  return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
};
constexpr auto trunc = [](double a) { return quiet(__builtin_trunc(a)); };
constexpr auto ceil = [](double a) { return quiet(__builtin_ceil(a)); };
constexpr auto floor = [](double a) { return quiet(__builtin_floor(a)); };
constexpr auto rndne = [](double a) { return quiet(__builtin_roundeven(a)); };
constexpr auto fract = [](double a) {
  const double part = a - __builtin_floor(a);
  return part >= 1.0 ? bits_as<double>(u64{0x3fefffffffffffff}) : settle(part, a, a);
};
constexpr auto ldexp = [](double a, i32 exponent) {
  const int e = exponent > 4200 ? 4200 : exponent < -4200 ? -4200 : exponent;
  return quiet(std::scalbn(a, e));
};
constexpr auto frexp_exp = [](double a) {
  const u64 bits = bits_as<u64>(a) & ~(u64{1} << 63);
  if (bits == 0 || bits >= kExponent) return 0;
  if (bits >> 52 != 0) return static_cast<i32>(bits >> 52) - 1022;
  return static_cast<i32>(-1010 - __builtin_clzll(bits));
};
constexpr auto frexp_mant = [](double a) {
  const u64 bits = bits_as<u64>(a);
  if ((bits << 1) == 0 || (bits & kExponent) == kExponent) return quiet(a);
  const u64 normal = (bits & kExponent) == 0 ? bits_as<u64>(a * 0x1p64) : bits;
  return bits_as<double>((normal & (kMantissa | u64{1} << 63)) | u64{1022} << 52);
};
constexpr auto reciprocal = [](double a) { return settle(1.0 / a, a, a); };
constexpr auto root = [](double a) { return settle(__builtin_sqrt(a), a, a); };
constexpr auto inverse_root = [](double a) { return settle(static_cast<double>(1.0L / __builtin_sqrtl(a)), a, a); };

constexpr auto lshlrev = [](u32 a, u64 b) { return b << (a & 63); };
constexpr auto lshrrev = [](u32 a, u64 b) { return b >> (a & 63); };
constexpr auto ashrrev = [](u32 a, i64 b) { return b >> (a & 63); };
constexpr auto lshl_add = [](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; };
constexpr auto move = [](u64 a) { return a; };

// The same for eight lanes, none of whose results is NaN.
constexpr auto add8 = [](D8v a, D8v b) { return a + b; };
constexpr auto mul8 = [](D8v a, D8v b) { return a * b; };
constexpr auto fused8 = [](D8v a, D8v b, D8v c) { return __builtin_elementwise_fma(a, b, c); };
constexpr auto reciprocal8 = [](D8v a) { return 1.0 / a; };

template <auto op>
constexpr Handler d1 = lane1<double, double, op>;
template <auto op>
constexpr Handler d2 = lane2<double, double, double, op>;

template <auto op8, auto op, class... Rows>
CKEMU_INLINE void by_eight(Wave& w, u32* d, Rows... rows) {
  each_eight(
      w, d, [&](int g) { return op8(load8_double(rows, g)...); },
      [&](int l) { set_lane<double>(d, l, op(get_lane<double>(rows, l)...)); });
}
template <auto op8, auto op>
void eight1(Wave& w, const Code& c) {
  by_eight<op8, op>(w, w.v[c.dst], source_row(w, c, 0));
}
template <auto op8, auto op>
void eight2(Wave& w, const Code& c) {
  by_eight<op8, op>(w, w.v[c.dst], source_row(w, c, 0), source_row(w, c, 1));
}
template <auto op8, auto op>
void eight3(Wave& w, const Code& c) {
  by_eight<op8, op>(w, w.v[c.dst], source_row(w, c, 0), source_row(w, c, 1), source_row(w, c, 2));
}
template <auto op8, auto op>
void eight2_into(Wave& w, const Code& c) {
  const u32* old = w.v[c.dst];
  by_eight<op8, op>(w, w.v[c.dst], source_row(w, c, 0), source_row(w, c, 1), old);
}

constexpr HandlerRow kWideRows[] = {
    {Op::v_add_f64, eight2<add8, add>},
    {Op::v_mul_f64, eight2<mul8, mul>},
    {Op::v_min_f64, d2<min_f>},
    {Op::v_max_f64, d2<max_f>},
    {Op::v_fma_f64, eight3<fused8, fused>},
    {Op::v_fmac_f64, eight2_into<fused8, fused>},
    {Op::v_trunc_f64, d1<trunc>},
    {Op::v_ceil_f64, d1<ceil>},
    {Op::v_floor_f64, d1<floor>},
    {Op::v_rndne_f64, d1<rndne>},
    {Op::v_fract_f64, d1<fract>},
    {Op::v_ldexp_f64, lane2<double, double, i32, ldexp>},
    {Op::v_frexp_exp_i32_f64, lane1<i32, double, frexp_exp>},
    {Op::v_frexp_mant_f64, d1<frexp_mant>},
    {Op::v_rcp_f64, eight1<reciprocal8, reciprocal>},
    {Op::v_sqrt_f64, d1<root>},
    {Op::v_rsq_f64, d1<inverse_root>},
    {Op::v_lshlrev_b64, lane2<u64, u32, u64, lshlrev>},
    {Op::v_lshrrev_b64, lane2<u64, u32, u64, lshrrev>},
    {Op::v_ashrrev_i64, lane2<i64, u32, i64, ashrrev>},
    {Op::v_lshl_add_u64, lane3<u64, u64, u32, u64, lshl_add>},
    {Op::v_mov_b64, lane1<u64, u64, move>},
};

}  // namespace

HandlerRows wide_handlers() { return kWideRows; }

}  // namespace ckemu
