// SPDX-License-Identifier: MIT
#include "translate/scalar_ops.h"

#include <cstddef>

#include "ops/handlers.h"
#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

enum Alu : u8 {
  kAddTo = 0,
  kOrTo = 1,
  kWithCarry = 2,
  kWithBorrow = 3,
  kAndTo = 4,
  kSubtract = 5,
  kXorTo = 6,
  kCompare = 7
};

struct Scalar {
  Assembler& a;
  const Code& c;

  void source(Reg to, int slot, bool wide) const {
    const Source& from = c.src[slot];
    if (from.kind == Kind::Sgpr) return a.load(to, scalar_at(from.index), wide);
    a.move(to, from.row[0] | (wide ? u64{from.row[kLanes]} << 32 : 0));
  }
  void result(Reg from, bool wide) const { a.store(scalar_at(c.dst), from, wide); }
  void scc(x86::Condition condition) const { a.set_if(condition, scc_place()); }
};

using Emit = void (*)(const Scalar& s, u32 detail);
struct Row {
  Op op;
  Emit emit;
  u32 detail = 0;
};
constexpr u32 kWide = 0x100, kInvertSecond = 0x200, kInvertResult = 0x400;

void sum(const Scalar& s, u32 detail) {  // low byte: add or subtract; the next: when scc is set
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  s.a.alu(detail & 0xff, rax, rcx, false);
  s.scc(static_cast<x86::Condition>(detail >> 8));
  s.result(rax, false);
}
void sum_with_carry(const Scalar& s, u32 what) {
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  s.a.load_byte(rdx, scc_place());
  s.a.alu(kAddTo, rdx, -1, false);  // the carry flag becomes scc
  s.a.alu(static_cast<u8>(what), rax, rcx, false);
  s.scc(kCarry);
  s.result(rax, false);
}
void logic(const Scalar& s, u32 detail) {
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.source(rcx, 1, wide);
  if ((detail & kInvertSecond) != 0) s.a.bit_not(rcx, wide);
  s.a.alu(detail & 0xff, rax, rcx, wide);
  if ((detail & kInvertResult) != 0) s.a.bit_not(rax, wide);
  s.a.test(rax, rax, wide);
  s.scc(kNonZero);
  s.result(rax, wide);
}
void invert(const Scalar& s, u32 detail) {
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.a.bit_not(rax, wide);
  s.a.test(rax, rax, wide);
  s.scc(kNonZero);
  s.result(rax, wide);
}
void shift(const Scalar& s, u32 detail) {  // x86 takes the number modulo the width too
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.source(rcx, 1, false);
  s.a.shift(detail & 0xff, rax, wide);
  s.a.test(rax, rax, wide);
  s.scc(kNonZero);
  s.result(rax, wide);
}
void shift_add(const Scalar& s, u32 by) {
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  s.a.shift(4, rax, static_cast<u8>(by), true);
  s.a.alu(kAddTo, rax, rcx, true);
  s.result(rax, false);
  s.a.shift(5, rax, 32, true);
  s.scc(kNonZero);
}
void multiply(const Scalar& s, u32) {
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  s.a.multiply(rax, rcx, false);
  s.result(rax, false);
}
void multiply_high(const Scalar& s, u32 is_signed) {
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  if (is_signed != 0) {
    s.a.sign_extend(rax, rax);
    s.a.sign_extend(rcx, rcx);
  }
  s.a.multiply(rax, rcx, true);
  s.a.shift(5, rax, 32, true);
  s.result(rax, false);
}
void extreme(const Scalar& s, u32 condition) {  // under which the first wins
  s.source(rax, 0, false);
  s.source(rcx, 1, false);
  s.a.alu(kCompare, rax, rcx, false);
  s.scc(static_cast<x86::Condition>(condition));
  s.a.move_if(static_cast<x86::Condition>(condition), rcx, rax, false);
  s.result(rcx, false);
}
void select(const Scalar& s, u32 detail) {
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.source(rcx, 1, wide);
  s.a.load_byte(rdx, scc_place());
  s.a.test(rdx, rdx, false);
  s.a.move_if(kNonZero, rcx, rax, wide);
  s.result(rcx, wide);
}
void copy(const Scalar& s, u32 detail) {
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.result(rax, wide);
}
void copy_immediate(const Scalar& s, u32) { s.a.store(scalar_at(s.c.dst), static_cast<u32>(s.c.offset), false); }
void add_immediate(const Scalar& s, u32) {
  s.a.load(rax, scalar_at(s.c.dst), false);
  s.a.alu(kAddTo, rax, s.c.offset, false);
  s.scc(kOverflow);
  s.result(rax, false);
}
void multiply_immediate(const Scalar& s, u32) {
  s.a.load(rax, scalar_at(s.c.dst), false);
  s.a.move(rcx, static_cast<u32>(s.c.offset));
  s.a.multiply(rax, rcx, false);
  s.result(rax, false);
}
void compare(const Scalar& s, u32 detail) {
  const bool wide = (detail & kWide) != 0;
  s.source(rax, 0, wide);
  s.source(rcx, 1, wide);
  s.a.alu(kCompare, rax, rcx, wide);
  s.scc(static_cast<x86::Condition>(detail & 0xff));
}
void compare_immediate(const Scalar& s, u32 detail) {  // kWide: unsigned
  const bool is_unsigned = (detail & kWide) != 0;
  s.source(rax, 0, false);
  s.a.alu(kCompare, rax, is_unsigned ? s.c.offset & 0xffff : s.c.offset, false);
  s.scc(static_cast<x86::Condition>(detail & 0xff));
}
/// dst = exec; exec = op(source, exec)
void save_exec(const Scalar& s, u32 detail) {
  s.source(rcx, 0, true);
  s.a.load(rax, scalar_at(kExec), true);
  s.result(rax, true);
  if ((detail & kInvertSecond) != 0) s.a.bit_not(rax, true);
  s.a.alu(detail & 0xff, rcx, rax, true);
  s.a.store(scalar_at(kExec), rcx, true);
  s.a.test(rcx, rcx, true);
  s.scc(kNonZero);
}

constexpr Row kRows[] = {
    {Op::s_add_u32, sum, kAddTo | kCarry << 8},
    {Op::s_sub_u32, sum, kSubtract | kCarry << 8},
    {Op::s_add_i32, sum, kAddTo | kOverflow << 8},
    {Op::s_sub_i32, sum, kSubtract | kOverflow << 8},
    {Op::s_addc_u32, sum_with_carry, kWithCarry},
    {Op::s_subb_u32, sum_with_carry, kWithBorrow},
    {Op::s_and_b32, logic, kAndTo},
    {Op::s_and_b64, logic, kAndTo | kWide},
    {Op::s_or_b32, logic, kOrTo},
    {Op::s_or_b64, logic, kOrTo | kWide},
    {Op::s_xor_b32, logic, kXorTo},
    {Op::s_xor_b64, logic, kXorTo | kWide},
    {Op::s_andn2_b32, logic, kAndTo | kInvertSecond},
    {Op::s_andn2_b64, logic, kAndTo | kInvertSecond | kWide},
    {Op::s_orn2_b32, logic, kOrTo | kInvertSecond},
    {Op::s_orn2_b64, logic, kOrTo | kInvertSecond | kWide},
    {Op::s_nand_b32, logic, kAndTo | kInvertResult},
    {Op::s_nand_b64, logic, kAndTo | kInvertResult | kWide},
    {Op::s_nor_b32, logic, kOrTo | kInvertResult},
    {Op::s_nor_b64, logic, kOrTo | kInvertResult | kWide},
    {Op::s_xnor_b32, logic, kXorTo | kInvertResult},
    {Op::s_xnor_b64, logic, kXorTo | kInvertResult | kWide},
    {Op::s_not_b32, invert},
    {Op::s_not_b64, invert, kWide},
    {Op::s_lshl_b32, shift, 4},
    {Op::s_lshl_b64, shift, 4 | kWide},
    {Op::s_lshr_b32, shift, 5},
    {Op::s_lshr_b64, shift, 5 | kWide},
    {Op::s_ashr_i32, shift, 7},
    {Op::s_ashr_i64, shift, 7 | kWide},
    {Op::s_lshl1_add_u32, shift_add, 1},
    {Op::s_lshl2_add_u32, shift_add, 2},
    {Op::s_lshl3_add_u32, shift_add, 3},
    {Op::s_lshl4_add_u32, shift_add, 4},
    {Op::s_mul_i32, multiply},
    {Op::s_mul_hi_u32, multiply_high, 0},
    {Op::s_mul_hi_i32, multiply_high, 1},
    {Op::s_min_i32, extreme, kLess},
    {Op::s_max_i32, extreme, kGreater},
    {Op::s_min_u32, extreme, kBelow},
    {Op::s_max_u32, extreme, kAbove},
    {Op::s_cselect_b32, select},
    {Op::s_cselect_b64, select, kWide},
    {Op::s_mov_b32, copy},
    {Op::s_mov_b64, copy, kWide},
    {Op::s_movk_i32, copy_immediate},
    {Op::s_addk_i32, add_immediate},
    {Op::s_mulk_i32, multiply_immediate},
    {Op::s_cmp_eq_i32, compare, kZero},
    {Op::s_cmp_lg_i32, compare, kNonZero},
    {Op::s_cmp_gt_i32, compare, kGreater},
    {Op::s_cmp_ge_i32, compare, kGreaterEqual},
    {Op::s_cmp_lt_i32, compare, kLess},
    {Op::s_cmp_le_i32, compare, kLessEqual},
    {Op::s_cmp_eq_u32, compare, kZero},
    {Op::s_cmp_lg_u32, compare, kNonZero},
    {Op::s_cmp_gt_u32, compare, kAbove},
    {Op::s_cmp_ge_u32, compare, kAboveEqual},
    {Op::s_cmp_lt_u32, compare, kBelow},
    {Op::s_cmp_le_u32, compare, kBelowEqual},
    {Op::s_cmp_eq_u64, compare, kZero | kWide},
    {Op::s_cmp_lg_u64, compare, kNonZero | kWide},
    {Op::s_cmpk_eq_i32, compare_immediate, kZero},
    {Op::s_cmpk_lg_i32, compare_immediate, kNonZero},
    {Op::s_cmpk_gt_i32, compare_immediate, kGreater},
    {Op::s_cmpk_ge_i32, compare_immediate, kGreaterEqual},
    {Op::s_cmpk_lt_i32, compare_immediate, kLess},
    {Op::s_cmpk_le_i32, compare_immediate, kLessEqual},
    {Op::s_cmpk_eq_u32, compare_immediate, kZero | kWide},
    {Op::s_cmpk_lg_u32, compare_immediate, kNonZero | kWide},
    {Op::s_cmpk_gt_u32, compare_immediate, kAbove | kWide},
    {Op::s_cmpk_ge_u32, compare_immediate, kAboveEqual | kWide},
    {Op::s_cmpk_lt_u32, compare_immediate, kBelow | kWide},
    {Op::s_cmpk_le_u32, compare_immediate, kBelowEqual | kWide},
    {Op::s_and_saveexec_b64, save_exec, kAndTo},
    {Op::s_or_saveexec_b64, save_exec, kOrTo},
    {Op::s_xor_saveexec_b64, save_exec, kXorTo},
    {Op::s_andn2_saveexec_b64, save_exec, kAndTo | kInvertSecond},
    {Op::s_orn2_saveexec_b64, save_exec, kOrTo | kInvertSecond},
};

}  // namespace

Mem scc_place() { return {kWave, kNoIndex, static_cast<i32>(offsetof(Wave, scc))}; }

bool emit_scalar(Assembler& a, const Code& code) {
  if (code.fn != handler_of(code.inst->op)) return false;
  for (int slot = 0; slot < 2; ++slot) {
    if (code.src[slot].kind == Kind::Special) return false;
  }
  for (const Row& row : kRows) {
    if (row.op != code.inst->op) continue;
    row.emit({a, code}, row.detail);
    return true;
  }
  return false;
}

}  // namespace ckemu::translate
