// SPDX-License-Identifier: MIT
//
// Integer operations that saturate instead of wrapping (clamp): all that can leave the range of their
// type. Shifts and bit operations cannot, so clamp changes nothing there.
#include "ops/saturate.h"

#include <type_traits>

#include "ops/handlers.h"
#include "ops/modifiers.h"

namespace ckemu {

namespace {

constexpr auto add_u = [](U8v a, U8v b) { return __builtin_elementwise_add_sat(a, b); };
constexpr auto sub_u = [](U8v a, U8v b) { return __builtin_elementwise_sub_sat(a, b); };
constexpr auto subrev_u = [](U8v a, U8v b) { return __builtin_elementwise_sub_sat(b, a); };
constexpr auto add_i = [](U8v a, U8v b) { return u(__builtin_elementwise_add_sat(i(a), i(b))); };
constexpr auto sub_i = [](U8v a, U8v b) { return u(__builtin_elementwise_sub_sat(i(a), i(b))); };

constexpr auto add = [](i64 a, i64 b) { return a + b; };
constexpr auto sub = [](i64 a, i64 b) { return a - b; };
constexpr auto subrev = [](i64 a, i64 b) { return b - a; };
constexpr auto mul = [](i64 a, i64 b) { return a * b; };
constexpr auto mad = [](i64 a, i64 b, i64 c) { return a * b + c; };

/// T = op of exact values of type A, and of type C for the third.
template <class T, class A, auto op>
constexpr Handler exact2 = lane2<T, A, A, [](A a, A b) { return saturated<T>(op(i64{a}, i64{b})); }>;
template <class T, class A, class C, auto op>
constexpr Handler exact3 = lane3<T, A, A, C, [](A a, A b, C c) { return saturated<T>(op(i64{a}, i64{b}, i64{c})); }>;

/// 24 bits of a register.
constexpr i64 low24(u32 a) { return a & 0xffffff; }
constexpr i64 low24(i32 a) { return static_cast<i32>(static_cast<u32>(a) << 8) >> 8; }
template <class T>
constexpr auto mul24 = [](T a, T b) { return saturated<T>(low24(a) * low24(b)); };
template <class T>
constexpr auto mad24 = [](T a, T b, T c) { return saturated<T>(low24(a) * low24(b) + c); };

/// Carry-out is that of the sum that wraps.
template <int sign, bool reversed, bool carry_in>
void with_carry(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, reversed ? 1 : 0), *b = source_row(w, c, reversed ? 0 : 1);
  const u64 in = carry_in ? scalar64(w, c.src[2]) : 0;
  u64 out = 0;
  each_lane(w, [&](int l) {
    const i64 exact = i64{a[l]} + sign * (i64{b[l]} + static_cast<i64>(in >> l & 1));
    out |= u64{exact != static_cast<u32>(exact)} << l;
    w.v[c.dst][l] = saturated<u32>(exact);
  });
  w.set_sgpr64(c.dst2, out);
}
template <class T>
void mad_64_32(Wave& w, const Code& c) {
  using Wide = std::conditional_t<std::is_signed_v<T>, i64, u64>;
  using Widest = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u64 carry = 0;
  each_lane(w, [&](int l) {
    const Widest exact = Widest{Wide{get_lane<T>(a, l)} * Wide{get_lane<T>(b, l)}} + get_lane<Wide>(e, l);
    const Wide result = saturated<Wide>(exact);
    carry |= u64{result != exact} << l;
    set_lane<Wide>(w.v[c.dst], l, result);
  });
  w.set_sgpr64(c.dst2, carry);
}

u32 difference(u32 a, u32 b) { return a > b ? a - b : b - a; }
/// Sums of absolute differences of fields of `bits`; `masked` leaves out those whose reference is 0.
template <int bits, bool masked = false>
u64 differences(u32 a, u32 b) {
  constexpr u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  u64 sum = 0;
  for (int n = 0; n < 32; n += bits) {
    const u32 reference = b >> n & mask;
    if (!masked || reference != 0) sum += difference(a >> n & mask, reference);
  }
  return sum;
}
template <int bits, int shift, bool masked = false>
constexpr auto sad = [](u32 a, u32 b, u32 c) { return saturated<u32>((differences<bits, masked>(a, b) << shift) + c); };

/// Windows of src0, each a byte further, against src1; Sum is the type of the accumulators.
template <class Sum, bool masked>
void windows(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  constexpr int bits = 8 * sizeof(Sum), per_row = 32 / bits;
  each_lane(w, [&](int l) {
    const u64 bytes = get_lane<u64>(a, l);
    u32 result[4] = {};
    for (int n = 0; n < 4; ++n) {
      const int row = n / per_row, at = n % per_row * bits;
      const u64 base = static_cast<Sum>(e[row * kLanes + l] >> at);
      const u64 sum = differences<8, masked>(static_cast<u32>(bytes >> (8 * n)), b[l]) + base;
      result[row] |= u32{saturated<Sum>(sum)} << at;
    }
    for (int n = 0; n < 4 / per_row; ++n) w.v[c.dst + n][l] = result[n];
  });
}

constexpr HandlerRow kSaturatingRows[] = {
    {Op::v_add_u32, map2<add_u>},
    {Op::v_sub_u32, map2<sub_u>},
    {Op::v_subrev_u32, map2<subrev_u>},
    {Op::v_add_i32, map2<add_i>},
    {Op::v_sub_i32, map2<sub_i>},
    {Op::v_add_u16, exact2<u16, u16, add>},
    {Op::v_sub_u16, exact2<u16, u16, sub>},
    {Op::v_subrev_u16, exact2<u16, u16, subrev>},
    {Op::v_add_i16, exact2<i16, i16, add>},
    {Op::v_sub_i16, exact2<i16, i16, sub>},
    {Op::v_mul_lo_u16, exact2<u16, u16, mul>},
    {Op::v_mad_u16, exact3<u16, u16, u16, mad>},
    {Op::v_mad_i16, exact3<i16, i16, i16, mad>},
    {Op::v_mad_legacy_u16, exact3<u16, u16, u16, mad>},
    {Op::v_mad_legacy_i16, exact3<i16, i16, i16, mad>},
    {Op::v_mad_u32_u16, exact3<u32, u16, u32, mad>},
    {Op::v_mad_i32_i16, exact3<i32, i16, i32, mad>},
    {Op::v_mul_u32_u24, lane2<u32, u32, u32, mul24<u32>>},
    {Op::v_mul_i32_i24, lane2<i32, i32, i32, mul24<i32>>},
    {Op::v_mad_u32_u24, lane3<u32, u32, u32, u32, mad24<u32>>},
    {Op::v_mad_i32_i24, lane3<i32, i32, i32, i32, mad24<i32>>},
    {Op::v_mad_u64_u32, mad_64_32<u32>},
    {Op::v_mad_i64_i32, mad_64_32<i32>},
    {Op::v_add_co_u32, with_carry<1, false, false>},
    {Op::v_sub_co_u32, with_carry<-1, false, false>},
    {Op::v_subrev_co_u32, with_carry<-1, true, false>},
    {Op::v_addc_co_u32, with_carry<1, false, true>},
    {Op::v_subb_co_u32, with_carry<-1, false, true>},
    {Op::v_subbrev_co_u32, with_carry<-1, true, true>},
    {Op::v_sad_u8, lane3<u32, u32, u32, u32, sad<8, 0>>},
    {Op::v_sad_hi_u8, lane3<u32, u32, u32, u32, sad<8, 16>>},
    {Op::v_sad_u16, lane3<u32, u32, u32, u32, sad<16, 0>>},
    {Op::v_sad_u32, lane3<u32, u32, u32, u32, sad<32, 0>>},
    {Op::v_msad_u8, lane3<u32, u32, u32, u32, sad<8, 0, true>>},
    {Op::v_qsad_pk_u16_u8, windows<u16, false>},
    {Op::v_mqsad_pk_u16_u8, windows<u16, true>},
    {Op::v_mqsad_u32_u8, windows<u32, true>},
};

}  // namespace

Handler saturating_handler(Op name) {
  const Op op = plain_name(name);
  for (const HandlerRows rows : {HandlerRows(kSaturatingRows), packed_saturating_handlers()}) {
    for (const HandlerRow& row : rows) {
      if (row.op == op) return row.fn;
    }
  }
  return nullptr;
}

}  // namespace ckemu
