// SPDX-License-Identifier: MIT
//
// Exponentials, logarithms, roots and trigonometry. The hardware is accurate to about 1 ulp; we
// compute in double and round once, so results are correctly rounded but for rare ties.
#include <cmath>

#include "ops/exp2_series.h"
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;
constexpr float kNan = __builtin_bit_cast(float, kQuietNan);

constexpr auto exp2 = [](double x) { return std::exp2(x); };
constexpr auto log2 = [](double x) { return std::log2(x); };
constexpr auto inverse_root = [](double x) { return 1.0 / std::sqrt(x); };
constexpr auto reciprocal = [](double x) { return 1.0 / x; };
// Arguments are in turns; only the fraction of a turn matters.
constexpr auto sine = [](double x) { return std::sin(kTwoPi * (x - std::rint(x))); };
constexpr auto cosine = [](double x) { return std::cos(kTwoPi * (x - std::rint(x))); };

template <auto function>
constexpr auto single = [](float x) {
  if (x != x) return x + x;
  const float result = static_cast<float>(function(static_cast<double>(x)));
  return result != result ? kNan : result;
};
template <auto function>
constexpr auto half = [](u16 x) {
  const float value = from_f16(x);
  const double result = function(static_cast<double>(value));
  return result != result && value == value ? u16{0x7e00} : to_f16(result);
};

/// single<inverse_root> for 8 lanes.
constexpr auto inverse_root8 = [](U8v x) {
  using D8v = double __attribute__((ext_vector_type(8)));
  const D8v result = 1.0 / __builtin_elementwise_sqrt(__builtin_convertvector(f(x), D8v));
  const U8v rounded = u(__builtin_convertvector(result, F8v));
  return choose(is_nan(x), quiet(x), choose(is_nan(rounded), U8v(kQuietNan), rounded));
};

/// 2^x for 8 lanes: of the fraction by its series to the 13th power, in double, which is nearer to the
/// result than its last bit of f32 by a factor of 2^28. Results are those of libm's exp2 but for rare ties.
constexpr auto exp2_8 = [](U8v x) {
  using D8v = double __attribute__((ext_vector_type(8)));
  using I8l = i64 __attribute__((ext_vector_type(8)));
  const F8v within = __builtin_elementwise_min(__builtin_elementwise_max(f(x), F8v(-200)), F8v(200));
  const F8v turns = __builtin_elementwise_roundeven(within);
  const D8v part = __builtin_convertvector(within - turns, D8v);  // exact
  D8v sum = kExp2Series[0];
  for (u32 n = 1; n < kExp2Terms; ++n) sum = __builtin_elementwise_fma(sum, part, D8v(kExp2Series[n]));
  const I8l exponent = __builtin_convertvector(__builtin_convertvector(turns, I8v), I8l);
  const D8v scaled = __builtin_bit_cast(D8v, __builtin_bit_cast(I8l, sum) + (exponent << 52));
  const U8v result = u(__builtin_convertvector(scaled, F8v));
  const U8v ends = choose(f(x) == -__builtin_inff(), U8v(0), choose(f(x) == __builtin_inff(), x, result));
  return choose(is_nan(x), quiet(x), ends);
};

template <auto function>
constexpr Handler f32 = lane1<float, float, single<function>>;
template <auto function>
constexpr Handler f16 = lane1<u16, u16, half<function>>;

constexpr HandlerRow kTranscendentalRows[] = {
    {Op::v_exp_f32, map1<exp2_8>},     {Op::v_exp_legacy_f32, map1<exp2_8>}, {Op::v_log_f32, f32<log2>},
    {Op::v_log_legacy_f32, f32<log2>}, {Op::v_rsq_f32, map1<inverse_root8>}, {Op::v_sin_f32, f32<sine>},
    {Op::v_cos_f32, f32<cosine>},      {Op::v_exp_f16, f16<exp2>},           {Op::v_log_f16, f16<log2>},
    {Op::v_rcp_f16, f16<reciprocal>},  {Op::v_rsq_f16, f16<inverse_root>},   {Op::v_sin_f16, f16<sine>},
    {Op::v_cos_f16, f16<cosine>},
};

}  // namespace

HandlerRows transcendental_handlers() { return kTranscendentalRows; }

}  // namespace ckemu
