// SPDX-License-Identifier: MIT
//
// f16, pairs of 16-bit numbers, conversions and bytes, as AVX-512 instructions.
#include <utility>

#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr u8 kSpare = 1, kMask = 2;
constexpr u8 kCurrentRounding = 4, kTowardZero = 3;
constexpr Evex kNarrowHalf{3, 1, 0x1d, 0}, kWidenHalf{2, 1, 0x13, 0}, kFromWords{2, 1, 0x33, 0}, kScale{2, 1, 0x2c, 0},
    kShuffleBytes{2, 1, 0x00, 0};
constexpr Evex kTwoWords[] = {{1, 1, 0xfd, 0}, {1, 1, 0xf9, 0}, {1, 1, 0xd5, 0}, {2, 1, 0x3a, 0}, {2, 1, 0x3e, 0},
                              {1, 1, 0xea, 0}, {1, 1, 0xee, 0}, {2, 1, 0x12, 1}, {2, 1, 0x10, 1}, {2, 1, 0x11, 1}};
enum TwoWords : u32 { Add, Sub, MulLo, MinU, MaxU, MinI, MaxI, Left, Right, Arithmetic };
constexpr u32 kShiftOfFirst = 0x100;
constexpr Evex kHalfOps[] = {kAddPs, kSubPs, kMulPs};
constexpr u32 kReversed = 0x100;

// Sources of VOP1 and VOP2 are Lanes::source: SDWA may pick a part of them.

u8 apply(Lanes& l, Evex op, u8 a, u8 b) {
  const u8 r = l.fresh();
  l.a.vector(op, r, a, b);
  return r;
}

/// The low or the high halves as f32.
u8 widened(Lanes& l, u8 x, bool high) {
  const u8 r = l.fresh();
  if (high) l.a.vector_shift(2, r, x, 16);
  l.a.vector(kWords, high ? r : x, 0, r);
  l.a.vector(kWidenHalf, r, 0, r);
  return r;
}
/// f32 as f16, in halves whose others are zero; `x` is overwritten.
u8 narrowed(Lanes& l, u8 x, u8 rounding) {
  const u8 r = l.fresh();
  l.a.vector_immediate(kNarrowHalf, x, 0, r, rounding);
  l.a.vector(kFromWords, r, 0, r);
  return r;
}
u8 joined(Lanes& l, u8 low, u8 high) {
  l.a.vector_shift(6, high, high, 16);
  l.a.vector(kOr, low, low, high);
  return low;
}

void half_from_float(Lanes& l, u32) { l.result(narrowed(l, l.source(0), kCurrentRounding)); }
void float_from_half(Lanes& l, u32) { l.result(widened(l, l.source(0), false)); }
void float_from_bf16(Lanes& l, u32) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector_shift(6, r, a, 16);
  l.result(r);
}
void pack_toward_zero(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1);
  const u8 low = narrowed(l, a, kTowardZero), high = narrowed(l, b, kTowardZero);
  l.result(joined(l, low, high));
}
void pack(Lanes& l, u32) {
  const u8 low = apply(l, kAnd, l.plain_source(0), l.constant(0xffff)), high = l.fresh();
  l.a.vector_shift(6, high, l.plain_source(1), 16);
  l.a.vector(kOr, low, low, high);
  l.result(low);
}
void half_two(Lanes& l, u32 detail) {
  u8 a = widened(l, l.source(0), false), b = widened(l, l.source(1), false);
  if ((detail & kReversed) != 0) std::swap(a, b);
  l.a.vector(kHalfOps[detail & 0xff], a, a, b);
  l.result(narrowed(l, a, kCurrentRounding));
}

// Pairs -------------------------------------------------------------------------------------------

/// A pair's operand with its halves where the result's want them.
u8 pair(Lanes& l, int slot) {
  const Inst& inst = l.inst();
  const bool picks = (inst.row->allowed.op_sel_hi >> slot & 1) != 0;
  const bool low_from_high = (inst.op_sel >> slot & 1) != 0,
             high_from_high = !picks || (inst.op_sel_hi >> slot & 1) != 0;
  u8 x = l.plain_source(slot);
  if (low_from_high || !high_from_high) {
    const u8 low = l.fresh(), high = l.fresh();
    if (low_from_high) l.a.vector_shift(2, low, x, 16);
    else l.a.vector(kAnd, low, x, l.constant(0xffff));
    if (high_from_high) l.a.vector(kAnd, high, x, l.constant(0xffff0000));
    else l.a.vector_shift(6, high, x, 16);
    l.a.vector(kOr, low, low, high);
    x = low;
  }
  const u32 flip = (inst.neg >> slot & 1u) << 15 | (inst.neg_hi >> slot & 1u) << 31;
  return flip != 0 ? apply(l, kXor, x, l.constant(flip)) : x;
}
void pair_integers(Lanes& l, u32 detail) {
  u8 a = pair(l, 0), b = pair(l, 1);
  if ((detail & kShiftOfFirst) != 0) {
    a = apply(l, kAnd, a, l.constant(0x000f000f));
    std::swap(a, b);
  }
  l.result(apply(l, kTwoWords[detail & 0xff], a, b));
}
void pair_multiply_add(Lanes& l, u32) {
  const u8 a = pair(l, 0), b = pair(l, 1), c = pair(l, 2);
  const u8 r = apply(l, kTwoWords[MulLo], a, b);
  l.a.vector(kTwoWords[Add], r, r, c);
  l.result(r);
}
void pair_halves(Lanes& l, u32 what) {
  const u8 a = pair(l, 0), b = pair(l, 1);
  u8 results[2];
  for (int high = 0; high < 2; ++high) {
    const u8 x = widened(l, a, high != 0), y = widened(l, b, high != 0);
    l.a.vector(kHalfOps[what], x, x, y);
    results[high] = narrowed(l, x, kCurrentRounding);
  }
  l.result(joined(l, results[0], results[1]));
}
void pair_move(Lanes& l, u32) {
  const u8 low = l.plain_source(0, l.inst().op_sel & 1), high = l.plain_source(1, l.inst().op_sel >> 1 & 1);
  l.result(low);
  l.result(high, 1);
}

// Others ------------------------------------------------------------------------------------------

void scale_by_power(Lanes& l, u32) {
  const u8 a = l.source(0), e = apply(l, kMaxI, l.plain_source(1), l.constant(static_cast<u32>(-600)));
  l.a.vector(kMinI, e, e, l.constant(600));
  l.a.vector(kCvtI2F, e, 0, e);
  l.float_result(apply(l, kScale, a, e));
}
void extract_signed(Lanes& l, u32) {  // with numbers, as compilers write it
  const u32 from = l.constant_of(1) & 31, width = l.constant_of(2) & 31;
  const u8 a = l.source(0), r = l.fresh();
  if (width == 0) return l.result(l.constant(0));
  if (from + width >= 32) {
    l.a.vector_shift(4, r, a, static_cast<u8>(from));
    return l.result(r);
  }
  l.a.vector_shift(6, r, a, static_cast<u8>(32 - from - width));
  l.a.vector_shift(4, r, r, static_cast<u8>(32 - width));
  l.result(r);
}

/// Bytes of v_perm_b32 that are signs of halves or constants. r: result, selector, a, b
void fill_signs(Assembler& a, const u8* r) {
  const auto pick = [&](u8 what, u8 condition, const auto& value) {
    a.vector(kBroadcast, r[4], 0, Mem{.constant = a.constant(0x01010101u * what)});
    a.vector_immediate(kCompareBytes, kMask, r[1], r[4], condition);
    value();
    a.vector(kMoveBytes, r[0], 0, r[4], kMask);
  };
  for (u8 n = 0; n < 4; ++n) {
    pick(static_cast<u8>(8 + n), 0, [&] {
      const u8 from = n < 2 ? r[3] : r[2];
      a.vector_shift(6, r[4], from, n % 2 == 0 ? 16 : 0);
      a.vector_shift(4, r[4], r[4], 31);
    });
  }
  pick(12, 0, [&] { a.vector(kXor, r[4], r[4], r[4]); });
  pick(12, 6, [&] { a.vector(kBroadcast, r[4], 0, Mem{.constant = a.constant(~0u)}); });
}
void permute_bytes(Lanes& l, u32) {
  const u8 a = l.plain_source(0), b = l.plain_source(1), selector = l.plain_source(2);
  const u8 within = apply(l, kAnd, selector, l.constant(0x03030303)), r = l.fresh(), places = l.fresh();
  l.a.vector_load_anywhere(places, Mem{.constant = l.a.table([](u32 n) { return n % 4 * 0x04040404; })});
  l.a.vector(kOr, within, within, places);
  l.a.vector(kShuffleBytes, r, b, within);
  l.a.vector(kTestBytes, kMask, selector, l.constant(0x04040404));
  l.a.vector(kShuffleBytes, places, a, within);
  l.a.vector(kMoveBytes, r, 0, places, kMask);
  l.a.vector(kTestDwords, kSpare, selector, l.constant(0xf8f8f8f8));
  l.rarely(kSpare, fill_signs, r, selector, a, b, within);
  l.result(r);
}

constexpr VectorRow kRows[] = {
    {Op::v_cvt_f16_f32, half_from_float, 0, true},
    {Op::v_cvt_f32_f16, float_from_half},
    {Op::v_cvt_f32_bf16, float_from_bf16},
    {Op::v_cvt_pkrtz_f16_f32, pack_toward_zero, 0, true},
    {Op::v_pack_b32_f16, pack},
    {Op::v_add_f16, half_two, 0},
    {Op::v_sub_f16, half_two, 1},
    {Op::v_subrev_f16, half_two, 1 | kReversed},
    {Op::v_mul_f16, half_two, 2},
    {Op::v_pk_add_i16, pair_integers, Add},
    {Op::v_pk_add_u16, pair_integers, Add},
    {Op::v_pk_sub_i16, pair_integers, Sub},
    {Op::v_pk_sub_u16, pair_integers, Sub},
    {Op::v_pk_mul_lo_u16, pair_integers, MulLo},
    {Op::v_pk_min_u16, pair_integers, MinU},
    {Op::v_pk_max_u16, pair_integers, MaxU},
    {Op::v_pk_min_i16, pair_integers, MinI},
    {Op::v_pk_max_i16, pair_integers, MaxI},
    {.op = Op::v_pk_lshlrev_b16, .emit = pair_integers, .detail = Left | kShiftOfFirst, .wide = true},
    {.op = Op::v_pk_lshrrev_b16, .emit = pair_integers, .detail = Right | kShiftOfFirst, .wide = true},
    {.op = Op::v_pk_ashrrev_i16, .emit = pair_integers, .detail = Arithmetic | kShiftOfFirst, .wide = true},
    {Op::v_pk_mad_i16, pair_multiply_add},
    {Op::v_pk_mad_u16, pair_multiply_add},
    {Op::v_pk_add_f16, pair_halves, 0},
    {Op::v_pk_mul_f16, pair_halves, 2},
    {Op::v_pk_mov_b32, pair_move},
    {.op = Op::v_ldexp_f32, .emit = scale_by_power, .floating = true, .wide = true},
    {.op = Op::v_bfe_i32, .emit = extract_signed, .constant_source = 1, .constant_source2 = 2},
    {Op::v_perm_b32, permute_bytes},
};

}  // namespace

std::span<const VectorRow> narrow_rows() { return kRows; }

}  // namespace ckemu::translate
