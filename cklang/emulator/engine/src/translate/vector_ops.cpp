// SPDX-License-Identifier: MIT
//
// Vector operations as instructions of AVX-512, or of AVX2 (avx2.cpp), with the results of the interpreter's handlers
// in ops/.
#include <algorithm>

#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/modifiers.h"
#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr Evex kRound{3, 1, 0x08, 0};
constexpr u8 kSpare = 1, kMask = 2, kMask2 = 3, kMask3 = 4, kOdd = 5;
constexpr u8 kLess = 1, kEqual = 0, kUnordered = 3;

// Simple shapes -----------------------------------------------------------------------------------

constexpr Evex kTwo[] = {kAddD, kSubD, kAnd, kOr, kXor, kMinI, kMaxI, kMinU, kMaxU, kMulLoD};
enum Two : u32 { Add, Sub, And, Or, Xor, MinI, MaxI, MinU, MaxU, MulLo };
constexpr u32 kReversed = 0x100, kNegated = 0x200;

u8 apply(Lanes& l, Evex op, u8 a, u8 b) {
  const u8 r = l.fresh();
  l.a.vector(op, r, a, b);
  return r;
}

void two(Lanes& l, u32 detail) {
  u8 a = l.source(0), b = l.source(1);
  if ((detail & kReversed) != 0) std::swap(a, b);
  const u8 r = apply(l, kTwo[detail & 0xff], a, b);
  if ((detail & kNegated) != 0) l.a.vector(kXor, r, r, l.constant(~0u));
  l.result(r);
}
/// Two operations, one after the other: the second on the first's result and source 2.
void three(Lanes& l, u32 detail) {
  const u8 a = l.source(0), b = l.source(1), c = l.source(2);
  const u8 r = apply(l, kTwo[detail & 0xf], a, b);
  l.a.vector(kTwo[detail >> 4], r, r, c);
  l.result(r);
}
void copy(Lanes& l, u32) { l.result(l.source(0)); }
void copy_pair(Lanes& l, u32) {
  const u8 low = l.source(0), high = l.source(0, 1);
  l.result(low);
  l.result(high, 1);
}
void invert(Lanes& l, u32) { l.result(apply(l, kXor, l.source(0), l.constant(~0u))); }

// Shifts ------------------------------------------------------------------------------------------

constexpr Evex kShifts[] = {kShlV, kShrV, kSarV};
constexpr u8 kShiftByNumber[] = {6, 2, 4};
enum Shift : u32 { Left, Right, Arithmetic };

/// `value` shifted by the low five bits of source `slot`.
u8 shifted(Lanes& l, u32 how, u8 value, int slot) {
  const u8 r = l.fresh();
  if (l.code().src[slot].kind == Kind::Constant) {
    l.a.vector_shift(kShiftByNumber[how], r, value, l.constant_of(slot) & 31);
    return r;
  }
  const u8 by = apply(l, kAnd, l.source(slot), l.constant(31));
  l.a.vector(kShifts[how], r, value, by);
  return r;
}
void shift_reversed(Lanes& l, u32 how) { l.result(shifted(l, how, l.source(1), 0)); }
void shift_then(Lanes& l, u32 what) {
  const u8 c = l.source(2);
  l.result(apply(l, kTwo[what], shifted(l, Left, l.source(0), 1), c));
}
void add_shift(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1);
  l.result(shifted(l, Left, apply(l, kAddD, a, b), 2));
}
void select_bits(Lanes& l, u32) {  // v_bfi: (a & b) | (~a & c)
  const u8 a = l.source(0), b = l.source(1), c = l.source(2), r = l.fresh();
  l.a.vector(kXor, r, b, c);
  l.a.vector(kAnd, r, r, a);
  l.a.vector(kXor, r, r, c);
  l.result(r);
}
/// (1 << (x & 31)) - 1 of source `slot`.
u8 low_bits(Lanes& l, int slot) {
  if (l.code().src[slot].kind == Kind::Constant) return l.constant((1u << (l.constant_of(slot) & 31)) - 1);
  const u8 ones = l.constant(1), r = shifted(l, Left, ones, slot);
  l.a.vector(kSubD, r, r, ones);
  return r;
}
void extract_unsigned(Lanes& l, u32) {
  const u8 a = l.source(0), bits = low_bits(l, 2);
  l.result(apply(l, kAnd, shifted(l, Right, a, 1), bits));
}
void align_bits(Lanes& l, u32) {  // (a:b) >> (c & 31); a shift by 32 gives 0
  const u8 a = l.source(0), b = l.source(1);
  const u8 by = apply(l, kAnd, l.source(2), l.constant(31));
  const u8 left = apply(l, kSubD, l.constant(32), by);
  const u8 low = apply(l, kShrV, b, by), high = apply(l, kShlV, a, left);
  l.result(apply(l, kOr, low, high));
}

struct Pair {
  u8 low, high;
};

/// 64-bit shifts by vectors: a shift of 32 bits or more gives 0.
Pair shift_pair(Lanes& l, u32 how, Pair x, u8 by) {
  const u8 rest = apply(l, kSubD, l.constant(32), by), more = apply(l, kSubD, by, l.constant(32));
  if (how == Left) {
    const u8 low = apply(l, kShlV, x.low, by), high = apply(l, kShlV, x.high, by);
    l.a.vector(kOr, high, high, apply(l, kShrV, x.low, rest));
    l.a.vector(kOr, high, high, apply(l, kShlV, x.low, more));
    return {low, high};
  }
  const u8 high = apply(l, kShifts[how], x.high, by), low = apply(l, kShrV, x.low, by);
  l.a.vector(kOr, low, low, apply(l, kShlV, x.high, rest));
  if (how == Right) {
    l.a.vector(kOr, low, low, apply(l, kShrV, x.high, more));
    return {low, high};
  }
  l.a.vector_immediate(kCompareU, kSpare, by, l.constant(32), 5);  // not below
  l.a.vector(kSarV, low, x.high, more, kSpare);
  return {low, high};
}
/// The same by a number.
Pair shift_pair(Lanes& l, u32 how, Pair x, u32 by) {
  if (by == 0) return x;
  if (how != Left || by >= 32) return shift_pair(l, how, x, l.constant(by));
  const u8 low = l.fresh(), high = l.fresh(), carried = l.fresh();
  l.a.vector_shift(6, low, x.low, static_cast<u8>(by));
  l.a.vector_shift(6, high, x.high, static_cast<u8>(by));
  l.a.vector_shift(2, carried, x.low, static_cast<u8>(32 - by));
  l.a.vector(kOr, high, high, carried);
  return {low, high};
}
void shift_wide(Lanes& l, u32 how) {
  const Pair x{l.source(1), l.source(1, 1)};
  const bool number = l.code().src[0].kind == Kind::Constant;
  const Pair r = number ? shift_pair(l, how, x, u32{l.constant_of(0) & 63})
                        : shift_pair(l, how, x, apply(l, kAnd, l.source(0), l.constant(63)));
  l.result(r.low);
  l.result(r.high, 1);
}

// Sums of 64 bits, products ------------------------------------------------------------------------

/// a + b; `carry` says where the low half has overflowed.
Pair add_pair(Lanes& l, Pair a, Pair b, u8 carry) {
  const u8 low = apply(l, kAddD, a.low, b.low), high = apply(l, kAddD, a.high, b.high);
  l.a.vector_immediate(kCompareU, carry, low, b.low, kLess);
  l.a.vector(kSubD, high, high, l.constant(~0u), carry);
  return {low, high};
}
void shift_add_wide(Lanes& l, u32) {
  const Pair a{l.source(0), l.source(0, 1)}, c{l.source(2), l.source(2, 1)};
  const Pair r = add_pair(l, shift_pair(l, Left, a, u32{l.constant_of(1) & 7}), c, kSpare);
  l.result(r.low);
  l.result(r.high, 1);
}
/// The 64-bit products of lanes.
Pair product(Lanes& l, Evex op, u8 a, u8 b) {
  const u8 even = apply(l, op, a, b), odd_a = l.fresh(), odd_b = l.fresh(), high = l.fresh();
  l.a.mask_odd(kOdd);
  l.a.vector_shift_q(2, odd_a, a, 32);
  l.a.vector_shift_q(2, odd_b, b, 32);
  l.a.vector(op, odd_a, odd_a, odd_b);
  l.a.vector_shift_q(2, high, even, 32);
  l.a.vector(kMove, high, 0, odd_a, kOdd);
  l.a.vector_shift_q(6, odd_a, odd_a, 32);
  l.a.vector(kMove, even, 0, odd_a, kOdd);
  return {even, high};
}
void multiply_high(Lanes& l, u32 is_signed) {
  const u8 a = l.source(0), b = l.source(1);
  l.result(product(l, is_signed != 0 ? kMulDq : kMulUdq, a, b).high);
}
void multiply_add_wide(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1);
  const Pair c{l.source(2), l.source(2, 1)}, p = product(l, kMulUdq, a, b);
  const u8 low = apply(l, kAddD, p.low, c.low), high = apply(l, kAddD, p.high, c.high);
  l.a.vector_immediate(kCompareU, kSpare, low, c.low, kLess);
  l.a.vector_immediate(kCompareU, kMask, high, c.high, kLess);
  l.a.vector(kSubD, high, high, l.constant(~0u), kSpare);
  l.a.vector_immediate(kCompareU, kMask2, high, l.constant(0), kEqual, kSpare);
  l.a.mask_or(kMask, kMask, kMask2);
  l.mask_result(kMask, l.code().dst2);
  l.result(low);
  l.result(high, 1);
}
u8 low24(Lanes& l, int slot, bool is_signed) {
  const u8 x = l.source(slot);
  if (!is_signed) return apply(l, kAnd, x, l.constant(0xffffff));
  const u8 r = l.fresh();
  l.a.vector_shift(6, r, x, 8);
  l.a.vector_shift(4, r, r, 8);
  return r;
}
void multiply24(Lanes& l, u32 detail) {  // bit 0: signed; bit 1: plus source 2
  const u8 a = low24(l, 0, (detail & 1) != 0), b = low24(l, 1, (detail & 1) != 0);
  const u8 r = apply(l, kMulLoD, a, b);
  if ((detail & 2) != 0) l.a.vector(kAddD, r, r, l.source(2));
  l.result(r);
}

// Masks -------------------------------------------------------------------------------------------

void choose_lanes(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1), r = l.fresh();
  l.mask(kMask, 2);
  l.a.vector(kBlendD, r, a, b, kMask);
  l.result(r);
}
/// a + b or a - b with a carry; bit 0: subtract, bit 1: with carry-in, bit 2: operands reversed
void carrying(Lanes& l, u32 detail) {
  u8 a = l.source(0), b = l.source(1);
  if ((detail & 4) != 0) std::swap(a, b);
  const bool subtract = (detail & 1) != 0, carry_in = (detail & 2) != 0;
  const u8 r = apply(l, subtract ? kSubD : kAddD, a, b);
  if (carry_in) l.mask(kMask, 2);
  l.a.vector_immediate(kCompareU, kMask2, subtract ? a : r, subtract ? b : a, kLess);
  if (carry_in) {
    if (subtract) l.a.vector_immediate(kCompareU, kMask3, r, l.constant(0), kEqual, kMask);
    l.a.vector(subtract ? kAddD : kSubD, r, r, l.constant(~0u), kMask);
    if (!subtract) l.a.vector_immediate(kCompareU, kMask3, r, l.constant(0), kEqual, kMask);
    l.a.mask_or(kMask2, kMask2, kMask3);
  }
  l.mask_result(kMask2, l.code().dst2);
  l.result(r);
}
// Predicates of the vector compares, by the operation's conditions.
constexpr u8 kFloatPredicate[16] = {0x0b, 0x11, 0x00, 0x12, 0x1e, 0x0c, 0x1d, 0x07,
                                    0x03, 0x19, 0x08, 0x1a, 0x16, 0x04, 0x15, 0x0f};
constexpr u8 kIntegerPredicate[8] = {3, 1, 0, 2, 6, 4, 5, 7};
void compare_float(Lanes& l, u32 condition) {
  const u8 a = l.source(0), b = l.source(1);
  l.a.vector_immediate(kComparePs, kMask, a, b, kFloatPredicate[condition]);
  l.mask_result(kMask, l.code().dst);
}
void compare_integer(Lanes& l, u32 detail) {  // bit 3: unsigned
  const u8 a = l.source(0), b = l.source(1);
  l.a.vector_immediate((detail & 8) != 0 ? kCompareU : kCompareI, kMask, a, b, kIntegerPredicate[detail & 7]);
  l.mask_result(kMask, l.code().dst);
}
/// 64 bits: the upper halves decide, unless they are equal.
void compare_wide(Lanes& l, u32 detail) {
  const Pair a{l.source(0), l.source(0, 1)}, b{l.source(1), l.source(1, 1)};
  const u8 condition = detail & 7;
  const u8 strict = static_cast<u8>(condition & 5);  // less, greater
  const Evex high = (detail & 8) != 0 ? kCompareU : kCompareI;
  l.a.vector_immediate(kCompareU, kMask, a.high, b.high, kEqual);
  l.a.vector_immediate(kCompareU, kMask, a.low, b.low, kIntegerPredicate[condition], kMask);
  l.a.vector_immediate(high, kMask2, a.high, b.high, kIntegerPredicate[strict]);
  l.a.mask_or(kMask, kMask, kMask2);
  l.mask_result(kMask, l.code().dst);
}

/// Where classes of f32 begin, by magnitude, and which bit v_cmp_class has for each, four bits a class.
constexpr u32 kFirstOfClass[] = {1, 0x00800000, 0x7f800000, 0x7f800001, 0x7fc00000};
constexpr u32 kPositiveClasses = 0x109876, kNegativeClasses = 0x102345;
void compare_class(Lanes& l, u32) {
  const u8 x = l.source(0), wanted = l.plain_source(1), magnitude = apply(l, kAnd, x, l.constant(0x7fffffff));
  const u8 step = l.constant(static_cast<u32>(-4)), number = l.fresh();
  l.a.vector(kXor, number, number, number);
  for (const u32 first : kFirstOfClass) {
    const u8 least = l.constant(first);
    l.a.vector_immediate(kCompareU, kMask, magnitude, least, 5);  // not below
    l.a.vector(kSubD, number, number, step, kMask);
    l.let_go(least);
  }
  const u8 bit = l.fresh();
  l.a.vector_immediate(kCompareU, kMask, x, magnitude, 4);  // not equal: negative
  l.a.vector(kBlendD, bit, l.constant(kPositiveClasses), l.constant(kNegativeClasses), kMask);
  l.a.vector(kShrV, bit, bit, number);
  l.a.vector(kAnd, bit, bit, l.constant(15));
  l.a.vector(kShrV, bit, wanted, bit);
  l.a.vector(kTestDwords, kMask, bit, l.constant(1));
  l.mask_result(kMask, l.code().dst);
}

// Floats ------------------------------------------------------------------------------------------

void float_two(Lanes& l, Evex op, bool reversed) {
  u8 a = l.source(0), b = l.source(1);
  if (reversed) std::swap(a, b);
  const u8 r = apply(l, op, a, b);
  l.settle(r, a, b, b);
  l.float_result(r);
}
void add_float(Lanes& l, u32) { float_two(l, kAddPs, false); }
void subtract_float(Lanes& l, u32 reversed) { float_two(l, kSubPs, reversed != 0); }
void multiply_float(Lanes& l, u32) { float_two(l, kMulPs, false); }

u8 fused(Lanes& l, u8 a, u8 b, u8 c) {
  const u8 r = l.fresh();
  l.a.vector(kMove, r, 0, c);
  l.a.vector(kFma231, r, a, b);
  l.settle(r, a, b, c);
  return r;
}
void fuse(Lanes& l, u32 into) {
  const u8 a = l.source(0), b = l.source(1), c = into != 0 ? l.old() : l.source(2);
  l.float_result(fused(l, a, b, c));
}
void multiply_add(Lanes& l, u32 into) {  // two roundings
  const u8 a = l.source(0), b = l.source(1), c = into != 0 ? l.old() : l.source(2);
  const u8 r = apply(l, kMulPs, a, b);
  l.a.vector(kAddPs, r, r, c);
  l.settle(r, a, b, c);
  l.float_result(r);
}

/// A number wins over a quiet NaN, a signalling NaN over everything: MinNumber of ops/float_ops.h.
void order_nans(Assembler& a, const u8* r) {
  const auto quiet_bit = [&](u8 number) { a.vector(kBroadcast, number, 0, Mem{.constant = a.constant(0x400000)}); };
  const u8 result = r[0], x = r[1], y = r[2], bit = r[3];
  quiet_bit(bit);
  a.vector_immediate(kComparePs, kMask, x, x, kUnordered);
  a.vector_immediate(kComparePs, kMask2, y, y, kUnordered);
  a.vector(kMove, result, 0, x, kMask2);
  a.vector(kMove, result, 0, y, kMask);
  a.vector(kTestNone, kMask3, y, bit, kMask2);
  a.vector(kMove, result, 0, y, kMask3);
  a.vector(kTestNone, kMask3, x, bit, kMask);
  a.vector(kMove, result, 0, x, kMask3);
  a.vector_immediate(kComparePs, kMask, result, result, kUnordered);
  a.vector(kOr, result, result, bit, kMask);
}
u8 extreme(Lanes& l, u32 largest, u8 a, u8 b) {
  const u8 r = l.fresh(), bit = l.fresh();
  l.a.vector_immediate(kRange, r, a, b, largest != 0 ? 5 : 4);  // orders zeros too
  l.a.vector_immediate(kComparePs, kSpare, a, b, kUnordered, kEnabled);
  l.rarely(kSpare, order_nans, r, a, b, bit);
  return r;
}
void extreme2(Lanes& l, u32 largest) {
  const u8 a = l.source(0), b = l.source(1);
  l.float_result(extreme(l, largest, a, b));
}
void extreme3(Lanes& l, u32 largest) {
  const u8 a = l.source(0), b = l.source(1), c = l.source(2);
  l.float_result(extreme(l, largest, extreme(l, largest, a, b), c));
}
void round_float(Lanes& l, u32 how) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector_immediate(kRound, r, 0, a, static_cast<u8>(8 + how));
  l.float_result(r);
}
void reciprocal(Lanes& l, u32) {
  const u8 a = l.source(0), r = apply(l, kDivPs, l.constant(0x3f800000), a);
  l.settle(r, a, a, a);
  l.float_result(r);
}
void root(Lanes& l, u32) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector(kSqrtPs, r, 0, a);
  l.settle(r, a, a, a);
  l.float_result(r);
}
void float_from_integer(Lanes& l, u32 is_unsigned) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector(is_unsigned != 0 ? kCvtU2F : kCvtI2F, r, 0, a);
  l.float_result(r);
}
void float_from_byte(Lanes& l, u32 byte) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector_shift(2, r, a, static_cast<u8>(8 * byte));
  l.a.vector(kAnd, r, r, l.constant(0xff));
  l.a.vector(kCvtI2F, r, 0, r);
  l.float_result(r);
}
void unsigned_from_float(Lanes& l, u32) {  // NaN and negative ones become 0
  const u8 r = apply(l, kMaxPs, l.source(0), l.constant(0));
  l.a.vector(kCvtF2U, r, 0, r);
  l.result(r);
}
void signed_from_float(Lanes& l, u32) {
  const u8 a = l.source(0), r = l.fresh();
  l.a.vector(kCvtF2I, r, 0, a);
  l.a.vector_immediate(kComparePs, kMask, a, l.constant(0x4f000000), 0x1d);  // at least 2^31
  l.a.vector(kMove, r, 0, l.constant(0x7fffffff), kMask);
  l.a.vector_immediate(kComparePs, kMask, a, a, kUnordered);
  l.a.vector(kMove, r, 0, l.constant(0), kMask);
  l.result(r);
}

/// A half of a pair's operand, as op_sel and neg pick it.
u8 pair_operand(Lanes& l, int slot, bool high) {
  const Inst& inst = l.inst();
  const u8 select = high ? inst.op_sel_hi : inst.op_sel, negate = high ? inst.neg_hi : inst.neg;
  const u8 x = l.plain_source(slot, select >> slot & 1);
  return (negate >> slot & 1) != 0 ? apply(l, kXor, x, l.constant(0x80000000)) : x;
}
void pair_float(Lanes& l, u32 what) {  // 0 add, 1 multiply, 2 fused
  u8 results[2];
  for (int half = 0; half < 2; ++half) {
    const u8 a = pair_operand(l, 0, half != 0), b = pair_operand(l, 1, half != 0);
    if (what == 2) {
      results[half] = fused(l, a, b, pair_operand(l, 2, half != 0));
      continue;
    }
    results[half] = apply(l, what == 0 ? kAddPs : kMulPs, a, b);
    l.settle(results[half], a, b, b);
  }
  l.result(results[0]);
  l.result(results[1], 1);
}

// Tables ------------------------------------------------------------------------------------------

#define FLOAT_CONDITIONS(row)                                                                                 \
  row(f, 0) row(lt, 1) row(eq, 2) row(le, 3) row(gt, 4) row(lg, 5) row(ge, 6) row(o, 7) row(u, 8) row(nge, 9) \
      row(nlg, 10) row(ngt, 11) row(nle, 12) row(neq, 13) row(nlt, 14) row(tru, 15)
#define INTEGER_CONDITIONS(row) row(lt, 1) row(eq, 2) row(le, 3) row(gt, 4) row(ne, 5) row(ge, 6)
#define COMPARE_F32(name, condition) \
  {.op = Op::v_cmp_##name##_f32, .emit = compare_float, .detail = condition, .floating = true, .mask_result = 1},
#define COMPARE_INTEGERS(name, condition)                                                                 \
  {.op = Op::v_cmp_##name##_i32, .emit = compare_integer, .detail = condition, .mask_result = 1},         \
      {.op = Op::v_cmp_##name##_u32, .emit = compare_integer, .detail = condition | 8, .mask_result = 1}, \
      {.op = Op::v_cmp_##name##_i64, .emit = compare_wide, .detail = condition, .mask_result = 1},        \
      {.op = Op::v_cmp_##name##_u64, .emit = compare_wide, .detail = condition | 8, .mask_result = 1},

constexpr VectorRow kRows[] = {
    {Op::v_mov_b32, copy},
    {Op::v_accvgpr_read_b32, copy},
    {Op::v_accvgpr_write_b32, copy},
    {Op::v_accvgpr_mov_b32, copy},
    {Op::v_mov_b64, copy_pair},
    {Op::v_not_b32, invert},
    {Op::v_add_u32, two, Add},
    {Op::v_add_i32, two, Add},
    {Op::v_sub_u32, two, Sub},
    {Op::v_sub_i32, two, Sub},
    {Op::v_subrev_u32, two, Sub | kReversed},
    {Op::v_and_b32, two, And},
    {Op::v_or_b32, two, Or},
    {Op::v_xor_b32, two, Xor},
    {Op::v_xnor_b32, two, Xor | kNegated},
    {Op::v_min_i32, two, MinI},
    {Op::v_max_i32, two, MaxI},
    {Op::v_min_u32, two, MinU},
    {Op::v_max_u32, two, MaxU},
    {Op::v_mul_lo_u32, two, MulLo},
    {Op::v_and_or_b32, three, And | Or << 4},
    {Op::v_or3_b32, three, Or | Or << 4},
    {Op::v_add3_u32, three, Add | Add << 4},
    {Op::v_xad_u32, three, Xor | Add << 4},
    {Op::v_min3_u32, three, MinU | MinU << 4},
    {Op::v_max3_u32, three, MaxU | MaxU << 4},
    {Op::v_min3_i32, three, MinI | MinI << 4},
    {Op::v_max3_i32, three, MaxI | MaxI << 4},
    {Op::v_lshlrev_b32, shift_reversed, Left},
    {Op::v_lshrrev_b32, shift_reversed, Right},
    {Op::v_ashrrev_i32, shift_reversed, Arithmetic},
    {Op::v_lshl_add_u32, shift_then, Add},
    {Op::v_lshl_or_b32, shift_then, Or},
    {Op::v_add_lshl_u32, add_shift},
    {Op::v_bfi_b32, select_bits},
    {Op::v_bfe_u32, extract_unsigned},
    {Op::v_alignbit_b32, align_bits},
    {Op::v_lshlrev_b64, shift_wide, Left},
    {Op::v_lshrrev_b64, shift_wide, Right},
    {Op::v_ashrrev_i64, shift_wide, Arithmetic},
    {.op = Op::v_lshl_add_u64, .emit = shift_add_wide, .constant_source = 1},
    {Op::v_mul_hi_u32, multiply_high, 0},
    {Op::v_mul_hi_i32, multiply_high, 1},
    {.op = Op::v_mad_u64_u32, .emit = multiply_add_wide, .mask_result = 2},
    {Op::v_mul_u32_u24, multiply24, 0},
    {Op::v_mul_i32_i24, multiply24, 1},
    {Op::v_mad_u32_u24, multiply24, 2},
    {Op::v_mad_i32_i24, multiply24, 3},
    {.op = Op::v_cndmask_b32, .emit = choose_lanes, .mask_source = 2},
    {.op = Op::v_add_co_u32, .emit = carrying, .detail = 0, .mask_result = 2},
    {.op = Op::v_sub_co_u32, .emit = carrying, .detail = 1, .mask_result = 2},
    {.op = Op::v_subrev_co_u32, .emit = carrying, .detail = 5, .mask_result = 2},
    {.op = Op::v_addc_co_u32, .emit = carrying, .detail = 2, .mask_source = 2, .mask_result = 2},
    {.op = Op::v_subb_co_u32, .emit = carrying, .detail = 3, .mask_source = 2, .mask_result = 2},
    {.op = Op::v_subbrev_co_u32, .emit = carrying, .detail = 7, .mask_source = 2, .mask_result = 2},
    FLOAT_CONDITIONS(COMPARE_F32){.op = Op::v_cmp_class_f32, .emit = compare_class, .floating = true, .mask_result = 1},
    INTEGER_CONDITIONS(COMPARE_INTEGERS){Op::v_add_f32, add_float, 0, true},
    {Op::v_sub_f32, subtract_float, 0, true},
    {Op::v_subrev_f32, subtract_float, 1, true},
    {Op::v_mul_f32, multiply_float, 0, true},
    {Op::v_fma_f32, fuse, 0, true},
    {Op::v_fmac_f32, fuse, 1, true},
    {Op::v_fmamk_f32, fuse, 0, true},
    {Op::v_fmaak_f32, fuse, 0, true},
    {Op::v_mad_f32, multiply_add, 0, true},
    {Op::v_mac_f32, multiply_add, 1, true},
    {Op::v_madmk_f32, multiply_add, 0, true},
    {Op::v_madak_f32, multiply_add, 0, true},
    {Op::v_min_f32, extreme2, 0, true},
    {Op::v_max_f32, extreme2, 1, true},
    {Op::v_min3_f32, extreme3, 0, true},
    {Op::v_max3_f32, extreme3, 1, true},
    {Op::v_rndne_f32, round_float, 0, true},
    {Op::v_floor_f32, round_float, 1, true},
    {Op::v_ceil_f32, round_float, 2, true},
    {Op::v_trunc_f32, round_float, 3, true},
    {Op::v_rcp_f32, reciprocal, 0, true},
    {Op::v_rcp_iflag_f32, reciprocal, 0, true},
    {Op::v_sqrt_f32, root, 0, true},
    {Op::v_cvt_f32_i32, float_from_integer, 0, true},
    {.op = Op::v_cvt_f32_u32, .emit = float_from_integer, .detail = 1, .floating = true, .wide = true},
    {Op::v_cvt_f32_ubyte0, float_from_byte, 0, true},
    {Op::v_cvt_f32_ubyte1, float_from_byte, 1, true},
    {Op::v_cvt_f32_ubyte2, float_from_byte, 2, true},
    {Op::v_cvt_f32_ubyte3, float_from_byte, 3, true},
    {.op = Op::v_cvt_u32_f32, .emit = unsigned_from_float, .floating = true, .wide = true},
    {Op::v_cvt_i32_f32, signed_from_float, 0, true},
    {Op::v_pk_add_f32, pair_float, 0},
    {Op::v_pk_mul_f32, pair_float, 1},
    {Op::v_pk_fma_f32, pair_float, 2},
};

const VectorRow* row_of(Op op) {
  static const VectorRow** const index = [] {
    const VectorRow** rows = new const VectorRow*[static_cast<size_t>(Op::kCount)]();
    for (const std::span<const VectorRow> some : {std::span<const VectorRow>(kRows), division_rows(), local_rows(),
                                                  narrow_rows(), global_rows(), buffer_rows()}) {
      for (const VectorRow& row : some) rows[static_cast<size_t>(row.op)] = &row;
    }
    return rows;
  }();
  return index[static_cast<size_t>(op)];
}

/// Whether a mask of lanes can be read or written 16 at a time: in a register, its pair aligned.
bool mask_register(Kind kind, u32 index) { return kind == Kind::Sgpr && index % 2 == 0 && index < kM0; }

bool operands_fit(const Code& code, const VectorRow& row) {
  for (int slot = 0; slot < 3; ++slot) {
    const Source& source = code.src[slot];
    if (source.kind == Kind::Special) return false;
    if (slot == row.mask_source && !mask_register(source.kind, source.index)) return false;
    if ((slot == row.constant_source || slot == row.constant_source2) && source.kind != Kind::Constant) return false;
  }
  return true;
}

/// Whether the mask that it writes, 16 lanes at a time, takes the place of a scalar that all lanes read.
bool overwrites_scalar(const Code& code, const VectorRow& row) {
  const u32 mask = row.mask_result == 1 ? code.dst : code.dst2;
  for (int slot = 0; slot < 3; ++slot) {
    const Source& source = code.src[slot];
    if (source.kind != Kind::Sgpr || slot == row.mask_source) continue;
    if (source.index < mask + 2u && mask < source.index + std::max<u32>(source.dwords, 1)) return true;
  }
  return false;
}

}  // namespace

const VectorRow* vector_row(const Code& code, u32 lanes) {
  const Inst* inst = code.inst;
  if (inst == nullptr || inst->op_y != Op::none) return nullptr;
  const VectorRow* row = row_of(plain_name(inst->op));
  if (row != nullptr && row->local != 0 && (inst->gds || code.src[0].kind != Kind::Vgpr)) return nullptr;
  if (row != nullptr && inst->enc == Encoding::MUBUF && !buffer_fits(code)) return nullptr;
  if (row != nullptr && inst->enc != Encoding::MUBUF && row->global != 0 && !global_fits(code)) return nullptr;
  if (row != nullptr && row->guard != nullptr && inst->enc != Encoding::MUBUF && !scratch_fits(code)) return nullptr;
  if (row == nullptr || (lanes != 16 && (row->wide || code.crowded)) || !operands_fit(code, *row)) return nullptr;
  if (row->mask_result == 1 && !mask_register(code.dst_kind, code.dst)) return nullptr;
  if (row->mask_result == 2 && !mask_register(inst->dst[1].kind, code.dst2)) return nullptr;
  if (row->mask_result != 0 && overwrites_scalar(code, *row)) return nullptr;
  if (code.fn == handler_of(inst->op)) return row;
  const bool moves = lanes == 16 && moves_in_rows(*inst) && inst->enc != Encoding::VOP3P && row->mask_result == 0 &&
                     !(inst->bound_ctrl && ((inst->neg | inst->abs) & 1) != 0);
  const bool usual_form =
      inst->form == Form::Plain || moves || (inst->form == Form::Sdwa && inst->dst_sel == 6 && row->mask_result != 2);
  const bool whole = inst->op_sel == 0 && !inst->dst[0].half;
  const bool signs = row->floating || (inst->neg | inst->abs) == 0;
  const bool finishes = inst->omod == 0 && !inst->clamp;
  const bool modifiable = signs && (finishes || (row->floating && inst->dst[0].type == Type::F32));
  return code.fn == modified && usual_form && whole && modifiable ? row : nullptr;
}

}  // namespace ckemu::translate
