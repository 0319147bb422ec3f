// SPDX-License-Identifier: MIT
//
// The helpers of f32 division, and reciprocal roots: the usual case in place, lanes in which something special happens
// by a call. And powers of two, in double as the handler computes them.
#include "ops/division.h"
#include "ops/exp2_series.h"

#include "ops/float_ops.h"
#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr u8 kSpare = 1, kMask = 2;
constexpr u8 kAbove = 6, kUnordered = 3, kNotLess = 5;
constexpr Evex kRoot14{2, 1, 0x4e, 0}, kRoot12{1, 0, 0x52, 0}, kToDouble{1, 0, 0x5a, 0}, kToFloat{1, 1, 0x5a, 1},
    kMulPd{1, 1, 0x59, 1}, kFma213Pd{2, 1, 0xa8, 1}, kFnma231Pd{2, 1, 0xbc, 1};
constexpr Evex kUpper16{3, 1, 0x3b, 1}, kJoin16{3, 1, 0x3a, 1}, kUpper8{3, 1, 0x39, 0}, kJoin8{3, 1, 0x38, 0};

u8 apply(Lanes& l, Evex op, u8 a, u8 b) {
  const u8 r = l.fresh();
  l.a.vector(op, r, a, b);
  return r;
}
u8 exponents(Lanes& l, u8 x) {
  const u8 r = l.fresh(), bits = l.constant(255);
  l.a.vector_shift(2, r, x, 23);
  l.a.vector(kAnd, r, r, bits);
  l.let_go(bits);
  return r;
}

/// Adds to kSpare the lanes whose `x` is not in [least, most]; `x` may be negative.
void note_outside(Lanes& l, u8 x, i32 least, u32 most, bool first) {
  const u8 from = l.constant(static_cast<u32>(least)), length = l.constant(most - static_cast<u32>(least));
  const u8 distance = apply(l, kSubD, x, from);
  l.a.vector_immediate(kCompareU, first ? kSpare : kMask, distance, length, kAbove, kEnabled);
  if (!first) l.a.mask_or(kSpare, kSpare, kMask);
  for (const u8 done : {from, length, distance}) l.let_go(done);
}

using Helper = u32 (*)(u32*, const u32*, const u32*, const u32*, u32, u32);

/// Calls a helper with the registers in memory: r[0] becomes the result, and the flags the first dword of the frame's
/// first vector, which has had the mask.
template <Helper helper>
void call(Assembler& a, const u8* r) {
  const i32 bytes = static_cast<i32>(4 * a.lanes()), room = a.registers() * bytes;
  constexpr Reg places[] = {rdi, rsi, rdx, rcx};
  a.load(r9, scratch_at(0), false);
  a.mask_move(r8, kEnabled);
  a.alu(5, rsp, room, true);
  for (u8 n = 0; n < a.registers(); ++n) a.vector_store_anywhere({rsp, kNoIndex, n * bytes}, n);
  for (int n = 0; n < 4; ++n) {
    a.move(places[n], rsp);
    a.alu(0, places[n], r[n] * bytes, true);
  }
  a.move(rax, reinterpret_cast<u64>(helper));
  a.call(rax);
  for (u8 n = 0; n < a.registers(); ++n) a.vector_load_anywhere(n, {rsp, kNoIndex, n * bytes});
  a.alu(0, rsp, room, true);
  a.store(scratch_at(0), rax, false);
  a.mask_load(kEnabled, mask_at(kExec));
  a.mask_not(kDisabled, kEnabled);
}

void scale(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1), c = l.source(2), r = l.fresh();
  const u8 d = exponents(l, b), n = exponents(l, c), between = apply(l, kSubD, n, d);
  l.a.vector(kMove, r, 0, a);
  note_outside(l, d, 1, 252, true);
  note_outside(l, n, 24, 254, false);
  note_outside(l, between, -125, 95, false);
  l.a.store(scratch_at(0), 0u, false);
  l.rarely(kSpare, call<scale_lanes>, r, a, b, c);
  l.a.mask_load(kMask, scratch_at(0));
  l.mask_result(kMask, l.code().dst2);
  l.result(r);
}
void fuse(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1), c = l.source(2), r = l.fresh();
  l.a.vector(kMove, r, 0, c);
  l.a.vector(kFma231, r, a, b);
  l.a.mask_load(kMask, mask_at(kVcc));
  l.a.mask_move(rax, kMask);
  l.a.store(scratch_at(0), rax, false);
  l.a.mask_and(kMask, kMask, kEnabled);
  l.a.vector_immediate(kComparePs, kSpare, r, r, kUnordered, kEnabled);
  l.a.mask_or(kSpare, kSpare, kMask);
  l.rarely(kSpare, call<fuse_lanes>, r, a, b, c);
  l.result(r);
}
void fix(Lanes& l, u32) {
  const u8 a = l.source(0), b = l.source(1), c = l.source(2), r = l.fresh();
  const u8 d = exponents(l, b), n = exponents(l, c), between = apply(l, kSubD, n, d);
  note_outside(l, d, 1, 254, true);
  note_outside(l, n, 1, 254, false);
  note_outside(l, between, -150, 1000, false);
  l.a.vector_immediate(kComparePs, kMask, a, a, kUnordered, kEnabled);
  l.a.mask_or(kSpare, kSpare, kMask);
  const u8 sign = l.constant(0x80000000), signs = apply(l, kXor, b, c);
  l.a.vector(kAnd, signs, signs, sign);
  l.a.vector(kAndNot, r, sign, a);
  l.a.vector(kOr, r, r, signs);
  l.rarely(kSpare, call<fix_lanes>, r, a, b, c);
  l.result(r);
}

// Powers of two -----------------------------------------------------------------------------------

constexpr Evex kRound{3, 1, 0x08, 0}, kWidenSigned{2, 1, 0x25, 0}, kAddQ{1, 1, 0xd4, 1}, kUpperHalf{3, 1, 0x3b, 1},
    kJoinHalves{3, 1, 0x3a, 1}, kBroadcastDouble{2, 1, 0x19, 1};
u32 series_dword(u32 n) {
  const u64 bits = n / 2 < kExp2Terms ? __builtin_bit_cast(u64, kExp2Series[n / 2]) : 0;
  return static_cast<u32>(bits >> (n % 2 * 32));
}
u32 first_terms(u32 n) { return series_dword(n); }
u32 other_terms(u32 n) { return series_dword(16 + n); }

/// exp2_8 of ops/transcendental.cpp, step by step.
void power_of_two(Lanes& l, u32) {
  const u8 x = l.source(0), least = l.constant(0xc3480000), most = l.constant(0x43480000);  // -200, 200
  const u8 turns = apply(l, kMaxPs, x, least), part = l.fresh(), sum = l.fresh(), t = l.fresh(), r = l.fresh();
  const i32 terms[2] = {l.a.table(first_terms), l.a.table(other_terms)};
  const auto term = [&](u32 n) { return Mem{.constant = terms[n / 8] + static_cast<i32>(2 * (n % 8))}; };
  l.a.vector(kMinPs, part, turns, most);
  l.a.vector_immediate(kRound, turns, 0, part, 8);
  l.a.vector(kSubPs, part, part, turns);
  l.a.vector(kCvtF2I, turns, 0, turns);
  for (int half = 0; half < 2; ++half) {
    if (half != 0) l.a.vector_immediate(kUpperHalf, part, 0, part, 1);
    l.a.vector(kToDouble, t, 0, part);
    l.a.vector(kBroadcastDouble, sum, 0, term(0));
    for (u32 n = 1; n < kExp2Terms; ++n) l.a.vector(kFma213Pd, sum, t, term(n), 0, true);
    if (half != 0) l.a.vector_immediate(kUpperHalf, turns, 0, turns, 1);
    l.a.vector(kWidenSigned, t, 0, turns);
    l.a.vector_shift_q(6, t, t, 52);
    l.a.vector(kAddQ, sum, sum, t);
    l.a.vector(kToFloat, half == 0 ? r : t, 0, sum);
  }
  l.a.vector_immediate(kJoinHalves, r, r, t, 1);
  l.a.vector(kMove, t, 0, l.constant(0x00400000));
  l.a.vector(kOr, t, t, x);
  l.a.vector_immediate(kComparePs, kMask, x, x, kUnordered);
  l.a.vector(kMove, r, 0, t, kMask);
  l.float_result(r);
}

// Reciprocal roots ---------------------------------------------------------------------------------

u32 root_lanes(u32* r, const u32* x, const u32*, const u32*, u32 enabled, u32) {
  for (u32 left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const float value = bits_as<float>(x[lane]);
    const float root = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(value)));
    r[lane] = value != value ? x[lane] | 0x400000 : root != root ? kQuietNan : bits_as<u32>(root);
  }
  return 0;
}
/// Reciprocal roots of half the lanes, whose estimates are 2^-11 off at most: a step of third order, then one of second
/// order whose result is 1.5 * 2^-53 off at most. No reciprocal root of an f32 is nearer than 2^-51.8 to a number in
/// the middle of two f32, so that both this and the quotient of the interpreter are the nearest one.
u8 roots(Lanes& l, u8 x, u8 estimate) {
  Assembler& a = l.a;
  const Mem one{.constant = a.table([](u32 n) { return n % 2 != 0 ? 0x3ff00000u : 0u; })};
  const Mem half{.constant = a.table([](u32 n) { return n % 2 != 0 ? 0x3fe00000u : 0u; })};
  const Mem three_eighths{.constant = a.table([](u32 n) { return n % 2 != 0 ? 0x3fd80000u : 0u; })};
  const u8 y = l.fresh(), t = l.fresh(), rest = l.fresh(), p = l.fresh();
  a.vector(kToDouble, x, 0, x);
  a.vector(kToDouble, y, 0, estimate);
  a.vector(kMulPd, t, x, y);
  a.vector_load_anywhere(rest, one);
  a.vector(kFnma231Pd, rest, t, y);
  a.vector_load_anywhere(p, three_eighths);
  a.vector(kFma213Pd, p, rest, half);
  a.vector(kMulPd, p, p, rest);
  a.vector(kFma213Pd, p, y, y);
  a.vector(kMulPd, t, x, p);
  a.vector_load_anywhere(rest, one);
  a.vector(kFnma231Pd, rest, t, p);
  a.vector(kMulPd, rest, rest, half);
  a.vector(kFma213Pd, rest, p, p);
  a.vector(kToFloat, y, 0, rest);
  for (const u8 done : {t, rest, p}) l.let_go(done);
  return y;
}
void reciprocal_root(Lanes& l, u32) {
  const u8 x = l.source(0), estimate = l.fresh(), part = l.fresh(), upper = l.fresh();
  const u8 least = l.constant(0x00800000), length = l.constant(0x7f000000);
  l.a.vector(kSubD, part, x, least);
  l.a.vector_immediate(kCompareU, kSpare, part, length, kNotLess, kEnabled);
  for (const u8 done : {least, length}) l.let_go(done);
  l.a.vector(l.a.wide() ? kRoot14 : kRoot12, estimate, 0, x);
  l.a.vector(kMove, part, 0, x);
  const u8 r = roots(l, part, estimate);
  l.a.vector_immediate(l.a.wide() ? kUpper16 : kUpper8, x, 0, part, 1);
  l.a.vector_immediate(l.a.wide() ? kUpper16 : kUpper8, estimate, 0, upper, 1);
  l.a.vector(kMove, estimate, 0, upper);
  const u8 second = roots(l, part, estimate);
  l.a.vector_immediate(l.a.wide() ? kJoin16 : kJoin8, r, r, second, 1);
  l.a.store(scratch_at(0), 0u, false);
  l.rarely(kSpare, call<root_lanes>, r, x, x, x);
  l.float_result(r);
}

constexpr VectorRow kRows[] = {
    {.op = Op::v_exp_f32, .emit = power_of_two, .floating = true, .wide = true},
    {.op = Op::v_exp_legacy_f32, .emit = power_of_two, .floating = true, .wide = true},
    {.op = Op::v_rsq_f32, .emit = reciprocal_root, .floating = true},
    {.op = Op::v_div_scale_f32, .emit = scale, .mask_result = 2},
    {.op = Op::v_div_fmas_f32, .emit = fuse, .reads_vcc = true},
    {.op = Op::v_div_fixup_f32, .emit = fix},
};

}  // namespace

std::span<const VectorRow> division_rows() { return kRows; }

}  // namespace ckemu::translate
