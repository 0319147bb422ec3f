// SPDX-License-Identifier: MIT
//
// Rarely used operations on packed narrow fields: sums of absolute differences over windows, shifts
// with saturation, and accumulating packed arithmetic.
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

/// The sum over four bytes; `masked` leaves out those whose reference byte is 0.
u32 byte_differences(u32 a, u32 b, bool masked) {
  u32 sum = 0;
  for (int n = 0; n < 32; n += 8) {
    const int x = a >> n & 255, reference = b >> n & 255;
    if (!masked || reference != 0) sum += u32(__builtin_abs(x - reference));
  }
  return sum;
}
/// Four windows of src0, each a byte further, against src1; sums of 16 bits.
template <bool masked>
void windows16(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) {
    const u64 bytes = get_lane<u64>(a, l), base = get_lane<u64>(e, l);
    const u32 reference = b[l];
    u64 result = 0;
    for (int n = 0; n < 4; ++n) {
      const u32 sum = byte_differences(static_cast<u32>(bytes >> (8 * n)), reference, masked);
      result |= (sum + (base >> (16 * n)) & 0xffff) << (16 * n);
    }
    set_lane<u64>(d, l, result);
  });
}
/// The same with sums of 32 bits.
void windows32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) {
    const u64 bytes = get_lane<u64>(a, l);
    const u32 reference = b[l];
    u32 result[4];
    for (int n = 0; n < 4; ++n) {
      result[n] = byte_differences(static_cast<u32>(bytes >> (8 * n)), reference, true) + e[n * kLanes + l];
    }
    for (int n = 0; n < 4; ++n) d[n * kLanes + l] = result[n];
  });
}

template <i32 low, i32 high>
constexpr auto shift_and_pack = [](i32 a, i32 b, u32 shift) {
  const auto clip = [&](i32 x) {
    const i32 shifted = x >> (shift & 31);
    return static_cast<u32>(shifted < low ? low : shifted > high ? high : shifted) & 0xff;
  };
  return clip(a) | clip(b) << 8;
};

constexpr auto pack_f16_nearest = [](float a, float b) {
  return u32{_cvtss_sh(a, _MM_FROUND_TO_NEAREST_INT)} | u32{_cvtss_sh(b, _MM_FROUND_TO_NEAREST_INT)} << 16;
};
constexpr auto dot2_bf16 = [](u32 a, u32 b, float c) {
  const float low = from_bf16(static_cast<u16>(a)) * from_bf16(static_cast<u16>(b));
  return __builtin_fmaf(from_bf16(static_cast<u16>(a >> 16)), from_bf16(static_cast<u16>(b >> 16)), c + low);
};
constexpr auto fused16 = [](u16 a, u16 b, u16 c) {
  return to_f16(double(from_f16(a)) * double(from_f16(b)) + double(from_f16(c)));
};
constexpr auto pk_fmac = [](u32 a, u32 b, u32 c) {
  const u32 low = fused16(static_cast<u16>(a), static_cast<u16>(b), static_cast<u16>(c));
  return low | u32{fused16(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16), static_cast<u16>(c >> 16))} << 16;
};
/// A product with a zero is zero, whatever the other factor.
constexpr auto mad_legacy = [](U8v a, U8v b, U8v c) {
  const I8v zero = (f(a) == 0.0f) | (f(b) == 0.0f);
  const F8v product = separate(f(choose(zero, U8v(0), u(f(a) * f(b)))));
  return settle(product + f(c), a, b, c);
};

/// The truth table's function of the low halves; the high half stays.
void bitop3_b16(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  const u32 table = c.inst->bitop3;
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) {
    u32 result = 0;
    for (int bit = 0; bit < 16; ++bit) {
      const u32 row = (a[l] >> bit & 1) << 2 | (b[l] >> bit & 1) << 1 | (e[l] >> bit & 1);
      result |= (table >> row & 1) << bit;
    }
    d[l] = (d[l] & 0xffff0000) | result;
  });
}

/// One byte of the destination, whose other bytes stay.
constexpr auto put_u8 = [](float a, u32 which, u32 old) {
  const int shift = 8 * (which & 3);
  const float rounded = __builtin_rintf(a);
  const u32 byte = rounded >= 255.0f ? 255 : rounded > 0.0f ? static_cast<u32>(rounded) : 0;
  return (old & ~(u32{0xff} << shift)) | byte << shift;
};

constexpr HandlerRow kSumsRows[] = {
    {Op::v_qsad_pk_u16_u8, windows16<false>},
    {Op::v_mqsad_pk_u16_u8, windows16<true>},
    {Op::v_mqsad_u32_u8, windows32},
    {Op::v_ashr_pk_i8_i32, lane3<u32, i32, i32, u32, shift_and_pack<-128, 127>>},
    {Op::v_ashr_pk_u8_i32, lane3<u32, i32, i32, u32, shift_and_pack<0, 255>>},
    {Op::v_cvt_pk_f16_f32, lane2<u32, float, float, pack_f16_nearest>},
    {Op::v_cvt_pkaccum_u8_f32, lane2_into<u32, float, u32, put_u8>},
    {Op::v_dot2c_f32_bf16, lane2_into<float, u32, u32, dot2_bf16>},
    {Op::v_pk_fmac_f16, lane2_into<u32, u32, u32, pk_fmac>},
    {Op::v_mad_legacy_f32, map3<mad_legacy>},
    {Op::v_bitop3_b16, bitop3_b16},
};

}  // namespace

HandlerRows sums_handlers() { return kSumsRows; }

}  // namespace ckemu
