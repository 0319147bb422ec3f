// SPDX-License-Identifier: MIT
//
// Conversions between number formats. To integers: toward zero unless the name says otherwise,
// out of range saturates, NaN gives 0.
#include "ops/convert_fp8.h"
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

constexpr auto f32_from_i32 = [](U8v a) { return u(__builtin_convertvector(i(a), F8v)); };
constexpr auto f32_from_u32 = [](U8v a) { return u(__builtin_convertvector(a, F8v)); };
template <int byte>
constexpr auto f32_from_byte = [](U8v a) { return u(__builtin_convertvector(i(a >> (8 * byte) & 0xff), F8v)); };
constexpr auto f16_from_f32 = [](U8v a) { return pack_low_f16(f(a)); };
constexpr auto f32_from_f16 = [](U8v a) { return u(low_f16(a)); };

constexpr auto i32_from_f32 = [](float a) { return saturate<i32>(a); };
constexpr auto u32_from_f32 = [](float a) { return saturate<u32>(a); };
constexpr auto i32_round_up = [](float a) { return saturate<i32>(__builtin_floorf(a + 0.5f)); };
constexpr auto i32_round_down = [](float a) { return saturate<i32>(__builtin_floor(a)); };
constexpr auto i32_from_f64 = [](double a) { return saturate<i32>(a); };
constexpr auto u32_from_f64 = [](double a) { return saturate<u32>(a); };
constexpr auto f64_from_i32 = [](i32 a) { return static_cast<double>(a); };
constexpr auto f64_from_u32 = [](u32 a) { return static_cast<double>(a); };
constexpr auto f32_from_f64 = [](double a) { return static_cast<float>(a); };
constexpr auto f64_from_f32 = [](float a) { return static_cast<double>(a); };
constexpr auto f16_from_u16 = [](u16 a) { return to_f16(static_cast<float>(a)); };
constexpr auto f16_from_i16 = [](i16 a) { return to_f16(static_cast<float>(a)); };
constexpr auto u16_from_f16 = [](u16 a) { return saturate<u16>(from_f16(a)); };
constexpr auto i16_from_f16 = [](u16 a) { return saturate<i16>(from_f16(a)); };
constexpr auto off_f32_i4 = [](u32 a) {  // a signed nibble in sixteenths
  return static_cast<float>(static_cast<i32>(a << 28) >> 28) / 16.0f;
};

u16 round_i16(float a) { return static_cast<u16>(saturate<i16>(__builtin_rint(double(a) * 32767.0))); }
u16 round_u16(float a) { return saturate<u16>(__builtin_rint(double(a) * 65535.0)); }
constexpr auto norm_i16 = [](u16 a) { return round_i16(from_f16(a)); };
constexpr auto norm_u16 = [](u16 a) { return round_u16(from_f16(a)); };
constexpr auto pk = [](u16 low, u16 high) { return u32{low} | u32{high} << 16; };
constexpr auto pknorm_i16 = [](float a, float b) { return pk(round_i16(a), round_i16(b)); };
constexpr auto pknorm_u16 = [](float a, float b) { return pk(round_u16(a), round_u16(b)); };
constexpr auto pknorm_i16_f16 = [](u16 a, u16 b) { return pk(norm_i16(a), norm_i16(b)); };
constexpr auto pknorm_u16_f16 = [](u16 a, u16 b) { return pk(norm_u16(a), norm_u16(b)); };
constexpr auto pk_u16_u32 = [](u32 a, u32 b) {
  return pk(static_cast<u16>(a > 65535 ? 65535 : a), static_cast<u16>(b > 65535 ? 65535 : b));
};
constexpr auto pk_i16_i32 = [](i32 a, i32 b) {
  const auto clip = [](i32 x) { return static_cast<u16>(x > 32767 ? 32767 : x < -32768 ? -32768 : x); };
  return pk(clip(a), clip(b));
};
constexpr auto pkrtz = [](float a, float b) {
  return pk(_cvtss_sh(a, _MM_FROUND_TO_ZERO), _cvtss_sh(b, _MM_FROUND_TO_ZERO));
};
constexpr auto pk_u8_f32 = [](float a, u32 which, u32 old) {
  const int shift = 8 * (which & 3);
  return (old & ~(u32{0xff} << shift)) | u32{saturate<u8>(__builtin_rint(a))} << shift;
};
constexpr auto sat_pk_u8_i16 = [](u32 a) {
  const auto clip = [](i32 x) { return u32(x < 0 ? 0 : x > 255 ? 255 : x); };
  return clip(static_cast<i16>(a)) | clip(static_cast<i16>(a >> 16)) << 8;
};
constexpr auto f32_from_bf16 = [](U8v a) { return a << 16; };
constexpr auto pk_bf16_f32 = [](float a, float b) { return pk(to_bf16(a), to_bf16(b)); };

Fp8Kind kind_of(const Wave& w, bool wide_exponent) {
  const bool ocp = w.program->family() >= Family::Cdna4;
  return {.wide_exponent = wide_exponent, .ocp = ocp, .saturate = (w.mode >> 23 & 1) != 0};
}

/// One 8-bit value of each lane to f32; op_sel picks the byte.
template <bool bf8>
void f32_from_fp8(Wave& w, const Code& c) {
  const u32* a = source_row(w, c, 0);
  u32* d = w.v[c.dst];
  const Fp8Kind kind = kind_of(w, bf8);
  const u32 select = c.inst->op_sel & 3;
  const bool swapped = is_rdna(w.program->family());  // there bit 0 is the upper bit of the number
  const u32 shift = 8 * (swapped ? (select & 1) << 1 | select >> 1 : select);
  each_lane(w, [&](int l) { set_lane<float>(d, l, from_fp8(a[l] >> shift & 0xff, kind)); });
}
/// Two neighbouring bytes to two registers; op_sel picks the word.
template <bool bf8>
void pk_f32_from_fp8(Wave& w, const Code& c) {
  const u32* a = source_row(w, c, 0);
  u32* d = w.v[c.dst];
  const Fp8Kind kind = kind_of(w, bf8);
  const int shift = 16 * (c.inst->op_sel & 1);
  each_lane(w, [&](int l) {
    const u32 word = a[l] >> shift;
    set_lane<float>(d, l, from_fp8(word & 0xff, kind));
    set_lane<float>(d + kLanes, l, from_fp8(word >> 8 & 0xff, kind));
  });
}
/// Two f32 to two bytes of the word that op_sel picks; the other word stays.
template <bool bf8>
void pk_fp8_from_f32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  const Fp8Kind kind = kind_of(w, bf8);
  const int shift = 16 * (c.inst->op_sel >> 3 & 1);
  each_lane(w, [&](int l) {
    const u32 word = to_fp8(get_lane<float>(a, l), kind) | u32{to_fp8(get_lane<float>(b, l), kind)} << 8;
    d[l] = (d[l] & ~(u32{0xffff} << shift)) | word << shift;
  });
}
/// One f32 to one byte with stochastic rounding by the bits of src1.
template <bool bf8>
void sr_fp8_from_f32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *random = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  const Fp8Kind kind = kind_of(w, bf8);
  const int shift = 8 * (c.inst->op_sel >> 2 & 3);
  each_lane(w, [&](int l) {
    const u32 byte = to_fp8_stochastic(get_lane<float>(a, l), random[l], kind);
    d[l] = (d[l] & ~(u32{0xff} << shift)) | byte << shift;
  });
}

constexpr HandlerRow kConvertRows[] = {
    {Op::v_cvt_f32_i32, map1<f32_from_i32>},
    {Op::v_cvt_f32_u32, map1<f32_from_u32>},
    {Op::v_cvt_f32_ubyte0, map1<f32_from_byte<0>>},
    {Op::v_cvt_f32_ubyte1, map1<f32_from_byte<1>>},
    {Op::v_cvt_f32_ubyte2, map1<f32_from_byte<2>>},
    {Op::v_cvt_f32_ubyte3, map1<f32_from_byte<3>>},
    {Op::v_cvt_f16_f32, map1<f16_from_f32>},
    {Op::v_cvt_f32_f16, map1<f32_from_f16>},
    {Op::v_cvt_i32_f32, lane1<i32, float, i32_from_f32>},
    {Op::v_cvt_u32_f32, lane1<u32, float, u32_from_f32>},
    {Op::v_cvt_rpi_i32_f32, lane1<i32, float, i32_round_up>},
    {Op::v_cvt_flr_i32_f32, lane1<i32, float, i32_round_down>},
    {Op::v_cvt_i32_f64, lane1<i32, double, i32_from_f64>},
    {Op::v_cvt_u32_f64, lane1<u32, double, u32_from_f64>},
    {Op::v_cvt_f64_i32, lane1<double, i32, f64_from_i32>},
    {Op::v_cvt_f64_u32, lane1<double, u32, f64_from_u32>},
    {Op::v_cvt_f32_f64, lane1<float, double, f32_from_f64>},
    {Op::v_cvt_f64_f32, lane1<double, float, f64_from_f32>},
    {Op::v_cvt_f16_u16, lane1<u16, u16, f16_from_u16>},
    {Op::v_cvt_f16_i16, lane1<u16, i16, f16_from_i16>},
    {Op::v_cvt_u16_f16, lane1<u16, u16, u16_from_f16>},
    {Op::v_cvt_i16_f16, lane1<i16, u16, i16_from_f16>},
    {Op::v_cvt_off_f32_i4, lane1<float, u32, off_f32_i4>},
    {Op::v_cvt_norm_i16_f16, lane1<u16, u16, norm_i16>},
    {Op::v_cvt_norm_u16_f16, lane1<u16, u16, norm_u16>},
    {Op::v_cvt_pknorm_i16_f32, lane2<u32, float, float, pknorm_i16>},
    {Op::v_cvt_pknorm_u16_f32, lane2<u32, float, float, pknorm_u16>},
    {Op::v_cvt_pknorm_i16_f16, lane2<u32, u16, u16, pknorm_i16_f16>},
    {Op::v_cvt_pknorm_u16_f16, lane2<u32, u16, u16, pknorm_u16_f16>},
    {Op::v_cvt_pk_u16_u32, lane2<u32, u32, u32, pk_u16_u32>},
    {Op::v_cvt_pk_i16_i32, lane2<u32, i32, i32, pk_i16_i32>},
    {Op::v_cvt_pkrtz_f16_f32, lane2<u32, float, float, pkrtz>},
    {Op::v_cvt_pk_u8_f32, lane3<u32, float, u32, u32, pk_u8_f32>},
    {Op::v_sat_pk_u8_i16, lane1<u32, u32, sat_pk_u8_i16>},
    {Op::v_cvt_f32_bf16, map1<f32_from_bf16>},
    {Op::v_cvt_pk_bf16_f32, lane2<u32, float, float, pk_bf16_f32>},
    {Op::v_cvt_f32_fp8, f32_from_fp8<false>},
    {Op::v_cvt_f32_bf8, f32_from_fp8<true>},
    {Op::v_cvt_pk_f32_fp8, pk_f32_from_fp8<false>},
    {Op::v_cvt_pk_f32_bf8, pk_f32_from_fp8<true>},
    {Op::v_cvt_pk_fp8_f32, pk_fp8_from_f32<false>},
    {Op::v_cvt_pk_bf8_f32, pk_fp8_from_f32<true>},
    {Op::v_cvt_sr_fp8_f32, sr_fp8_from_f32<false>},
    {Op::v_cvt_sr_bf8_f32, sr_fp8_from_f32<true>},
};

}  // namespace

HandlerRows convert_handlers() { return kConvertRows; }

}  // namespace ckemu
