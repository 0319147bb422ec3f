// SPDX-License-Identifier: MIT
//
// 32-bit integer and bit operations on lanes.
#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr auto move = [](U8v a) { return a; };
constexpr auto bit_not = [](U8v a) { return ~a; };
constexpr auto add = [](U8v a, U8v b) { return a + b; };
constexpr auto sub = [](U8v a, U8v b) { return a - b; };
constexpr auto subrev = [](U8v a, U8v b) { return b - a; };
constexpr auto bit_and = [](U8v a, U8v b) { return a & b; };
constexpr auto bit_or = [](U8v a, U8v b) { return a | b; };
constexpr auto bit_xor = [](U8v a, U8v b) { return a ^ b; };
constexpr auto bit_xnor = [](U8v a, U8v b) { return ~(a ^ b); };
constexpr auto lshlrev = [](U8v a, U8v b) { return b << (a & 31); };
constexpr auto lshrrev = [](U8v a, U8v b) { return b >> (a & 31); };
constexpr auto ashrrev = [](U8v a, U8v b) { return u(i(b) >> i(a & 31)); };
constexpr auto min_i = [](U8v a, U8v b) { return u(__builtin_elementwise_min(i(a), i(b))); };
constexpr auto max_i = [](U8v a, U8v b) { return u(__builtin_elementwise_max(i(a), i(b))); };
constexpr auto min_u = [](U8v a, U8v b) { return __builtin_elementwise_min(a, b); };
constexpr auto max_u = [](U8v a, U8v b) { return __builtin_elementwise_max(a, b); };
constexpr auto mul_lo = [](U8v a, U8v b) { return a * b; };

constexpr auto low24u = [](U8v a) { return a & 0xffffff; };
constexpr auto low24i = [](U8v a) { return u(i(a << 8) >> 8); };
constexpr auto mul_u24 = [](U8v a, U8v b) { return low24u(a) * low24u(b); };
constexpr auto mul_i24 = [](U8v a, U8v b) { return low24i(a) * low24i(b); };
constexpr auto mad_u24 = [](U8v a, U8v b, U8v c) { return mul_u24(a, b) + c; };
constexpr auto mad_i24 = [](U8v a, U8v b, U8v c) { return mul_i24(a, b) + c; };
constexpr auto mul_hi_u24 = [](u32 a, u32 b) { return static_cast<u32>(u64{a & 0xffffff} * (b & 0xffffff) >> 32); };
constexpr auto mul_hi_i24 = [](i32 a, i32 b) {
  const i64 x = static_cast<i32>(static_cast<u32>(a) << 8) >> 8;
  const i64 y = static_cast<i32>(static_cast<u32>(b) << 8) >> 8;
  return static_cast<i32>(x * y >> 32);
};
constexpr auto mul_hi_u = [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); };
constexpr auto mul_hi_i = [](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); };

constexpr auto lshl_add = [](U8v a, U8v b, U8v c) { return (a << (b & 31)) + c; };
constexpr auto add_lshl = [](U8v a, U8v b, U8v c) { return (a + b) << (c & 31); };
constexpr auto lshl_or = [](U8v a, U8v b, U8v c) { return (a << (b & 31)) | c; };
constexpr auto and_or = [](U8v a, U8v b, U8v c) { return (a & b) | c; };
constexpr auto or3 = [](U8v a, U8v b, U8v c) { return a | b | c; };
constexpr auto add3 = [](U8v a, U8v b, U8v c) { return a + b + c; };
constexpr auto xad = [](U8v a, U8v b, U8v c) { return (a ^ b) + c; };
constexpr auto bfi = [](U8v a, U8v b, U8v c) { return (a & b) | (~a & c); };
constexpr auto bfm = [](U8v a, U8v b) { return ((U8v(1) << (a & 31)) - 1) << (b & 31); };
constexpr auto bfe_u = [](U8v a, U8v b, U8v c) { return (a >> (b & 31)) & ((U8v(1) << (c & 31)) - 1); };
constexpr auto bfe_i = [](U8v a, U8v b, U8v c) {  // the field, sign-extended from its top bit
  const U8v width = c & 31;
  const U8v field = u(i(a) >> i(b & 31)) & ((U8v(1) << width) - 1);
  const U8v sign = (U8v(1) << ((width - 1) & 31)) & choose(width == 0, U8v(0), U8v(~0u));
  return (field ^ sign) - sign;
};
constexpr auto alignbit = [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (c & 31)); };
constexpr auto alignbyte = [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (8 * (c & 3))); };
constexpr auto permuted = [](u32 a, u32 b, u32 selector) {
  const u64 bytes = u64{a} << 32 | b;
  u32 result = 0;
  for (int n = 0; n < 4; ++n) {
    const u32 pick = selector >> (8 * n) & 0xff;
    u32 byte;
    if (pick < 8) {
      byte = bytes >> (8 * pick) & 0xff;
    } else if (pick < 12) {  // the sign of a half word
      byte = (bytes >> (16 * (pick - 8) + 15) & 1) != 0 ? 0xff : 0;
    } else {
      byte = pick == 12 ? 0 : 0xff;
    }
    result |= byte << (8 * n);
  }
  return result;
};
/// The same for 8 lanes, by byte shuffles unless a selector asks for a sign or a constant.
constexpr auto perm = [](U8v a, U8v b, U8v selector) {
  if (__builtin_reduce_or(selector & 0xf8f8f8f8) != 0) {
    U8v result;
    for (int n = 0; n < 8; ++n) result[n] = permuted(a[n], b[n], selector[n]);
    return result;
  }
  const U8v dword = {0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c};
  const __m256i within = __builtin_bit_cast(__m256i, (selector & 0x03030303) | dword);
  const __m256i from_a = _mm256_shuffle_epi8(__builtin_bit_cast(__m256i, a), within);
  const __m256i from_b = _mm256_shuffle_epi8(__builtin_bit_cast(__m256i, b), within);
  const __m256i wants_a = __builtin_bit_cast(__m256i, selector << 5);  // bit 2 of each byte on top
  return __builtin_bit_cast(U8v, _mm256_blendv_epi8(from_b, from_a, wants_a));
};
constexpr auto min3_u = [](U8v a, U8v b, U8v c) { return min_u(min_u(a, b), c); };
constexpr auto max3_u = [](U8v a, U8v b, U8v c) { return max_u(max_u(a, b), c); };
constexpr auto med3_u = [](U8v a, U8v b, U8v c) { return max_u(min_u(a, b), min_u(max_u(a, b), c)); };
constexpr auto min3_i = [](U8v a, U8v b, U8v c) { return min_i(min_i(a, b), c); };
constexpr auto max3_i = [](U8v a, U8v b, U8v c) { return max_i(max_i(a, b), c); };
constexpr auto med3_i = [](U8v a, U8v b, U8v c) { return max_i(min_i(a, b), min_i(max_i(a, b), c)); };

constexpr auto bfrev = [](u32 a) { return __builtin_bitreverse32(a); };
constexpr auto ffbh_u = [](u32 a) { return a == 0 ? ~u32{0} : u32(__builtin_clz(a)); };
constexpr auto ffbl = [](u32 a) { return a == 0 ? ~u32{0} : u32(__builtin_ctz(a)); };
constexpr auto ffbh_i = [](i32 a) { return a == 0 || a == -1 ? ~u32{0} : u32(__builtin_clz(u32(a < 0 ? ~a : a))); };
constexpr auto bcnt = [](u32 a, u32 b) { return u32(__builtin_popcount(a)) + b; };

constexpr auto sad_u8 = [](u32 a, u32 b, u32 c) {
  for (int n = 0; n < 32; n += 8) c += u32(__builtin_abs(int(a >> n & 255) - int(b >> n & 255)));
  return c;
};
constexpr auto sad_hi_u8 = [](u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0) << 16) + c; };
constexpr auto sad_u16 = [](u32 a, u32 b, u32 c) {
  for (int n = 0; n < 32; n += 16) { c += u32(__builtin_abs(int(a >> n & 0xffff) - int(b >> n & 0xffff))); }
  return c;
};
constexpr auto sad_u32 = [](u32 a, u32 b, u32 c) { return c + (a > b ? a - b : b - a); };
constexpr auto msad_u8 = [](u32 a, u32 b, u32 c) {  // bytes of b that are 0 do not count
  for (int n = 0; n < 32; n += 8) {
    if ((b >> n & 255) != 0) c += u32(__builtin_abs(int(a >> n & 255) - int(b >> n & 255)));
  }
  return c;
};
constexpr auto lerp_u8 = [](u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (int n = 0; n < 32; n += 8) { result |= ((a >> n & 255) + (b >> n & 255) + (c >> n & 1)) >> 1 << n; }
  return result;
};
constexpr auto mad_u32_u16 = [](U8v a, U8v b, U8v c) { return (a & 0xffff) * (b & 0xffff) + c; };
constexpr auto mad_i32_i16 = [](U8v a, U8v b, U8v c) { return u((i(a << 16) >> 16) * (i(b << 16) >> 16)) + c; };

/// The bitwise function of three operands with the instruction's truth table.
void bitop3(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  const u32 table = c.inst->bitop3;
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) {
    u32 result = 0;
    for (u32 row = 0; row < 8; ++row) {
      if ((table >> row & 1) == 0) continue;
      result |= ((row & 4) != 0 ? a[l] : ~a[l]) & ((row & 2) != 0 ? b[l] : ~b[l]) & ((row & 1) != 0 ? e[l] : ~e[l]);
    }
    d[l] = result;
  });
}

void swap(Wave& w, const Code& c) {
  u32 *a = w.v[c.dst], *b = w.v[c.src[0].index];
  each_lane(w, [&](int l) {
    const u32 held = a[l];
    a[l] = b[l];
    b[l] = held;
  });
}

void no_operation(Wave&, const Code&) {}

template <auto op>
constexpr Handler u2 = lane2<u32, u32, u32, op>;
template <auto op>
constexpr Handler u3 = lane3<u32, u32, u32, u32, op>;

constexpr HandlerRow kIntegerRows[] = {
    {Op::v_nop, no_operation},
    {Op::v_mov_b32, map1<move>},
    {Op::v_accvgpr_read_b32, map1<move>},
    {Op::v_accvgpr_write_b32, map1<move>},
    {Op::v_accvgpr_mov_b32, map1<move>},
    {Op::v_swap_b32, swap},
    {Op::v_not_b32, map1<bit_not>},
    {Op::v_add_u32, map2<add>},
    {Op::v_sub_u32, map2<sub>},
    {Op::v_subrev_u32, map2<subrev>},
    {Op::v_add_i32, map2<add>},
    {Op::v_sub_i32, map2<sub>},
    {Op::v_and_b32, map2<bit_and>},
    {Op::v_or_b32, map2<bit_or>},
    {Op::v_xor_b32, map2<bit_xor>},
    {Op::v_xnor_b32, map2<bit_xnor>},
    {Op::v_lshlrev_b32, map2<lshlrev>},
    {Op::v_lshrrev_b32, map2<lshrrev>},
    {Op::v_ashrrev_i32, map2<ashrrev>},
    {Op::v_min_i32, map2<min_i>},
    {Op::v_max_i32, map2<max_i>},
    {Op::v_min_u32, map2<min_u>},
    {Op::v_max_u32, map2<max_u>},
    {Op::v_mul_lo_u32, map2<mul_lo>},
    {Op::v_mul_hi_u32, u2<mul_hi_u>},
    {Op::v_mul_hi_i32, lane2<i32, i32, i32, mul_hi_i>},
    {Op::v_mul_u32_u24, map2<mul_u24>},
    {Op::v_mul_i32_i24, map2<mul_i24>},
    {Op::v_mul_hi_u32_u24, u2<mul_hi_u24>},
    {Op::v_mul_hi_i32_i24, lane2<i32, i32, i32, mul_hi_i24>},
    {Op::v_mad_u32_u24, map3<mad_u24>},
    {Op::v_mad_i32_i24, map3<mad_i24>},
    {Op::v_lshl_add_u32, map3<lshl_add>},
    {Op::v_add_lshl_u32, map3<add_lshl>},
    {Op::v_lshl_or_b32, map3<lshl_or>},
    {Op::v_and_or_b32, map3<and_or>},
    {Op::v_or3_b32, map3<or3>},
    {Op::v_add3_u32, map3<add3>},
    {Op::v_xad_u32, map3<xad>},
    {Op::v_bfi_b32, map3<bfi>},
    {Op::v_bfm_b32, map2<bfm>},
    {Op::v_bfe_u32, map3<bfe_u>},
    {Op::v_bfe_i32, map3<bfe_i>},
    {Op::v_alignbit_b32, u3<alignbit>},
    {Op::v_alignbyte_b32, u3<alignbyte>},
    {Op::v_perm_b32, map3<perm>},
    {Op::v_bitop3_b32, bitop3},
    {Op::v_min3_u32, map3<min3_u>},
    {Op::v_max3_u32, map3<max3_u>},
    {Op::v_med3_u32, map3<med3_u>},
    {Op::v_min3_i32, map3<min3_i>},
    {Op::v_max3_i32, map3<max3_i>},
    {Op::v_med3_i32, map3<med3_i>},
    {Op::v_bfrev_b32, lane1<u32, u32, bfrev>},
    {Op::v_ffbh_u32, lane1<u32, u32, ffbh_u>},
    {Op::v_ffbh_i32, lane1<u32, i32, ffbh_i>},
    {Op::v_ffbl_b32, lane1<u32, u32, ffbl>},
    {Op::v_bcnt_u32_b32, u2<bcnt>},
    {Op::v_sad_u8, u3<sad_u8>},
    {Op::v_sad_hi_u8, u3<sad_hi_u8>},
    {Op::v_sad_u16, u3<sad_u16>},
    {Op::v_sad_u32, u3<sad_u32>},
    {Op::v_msad_u8, u3<msad_u8>},
    {Op::v_lerp_u8, u3<lerp_u8>},
    {Op::v_mad_u32_u16, map3<mad_u32_u16>},
    {Op::v_mad_i32_i16, map3<mad_i32_i16>},
};

}  // namespace

HandlerRows integer_handlers() { return kIntegerRows; }

}  // namespace ckemu
