// SPDX-License-Identifier: MIT
#include "translate/assembler.h"

namespace ckemu::x86 {

constexpr Evex kMoveAnywhere{1, 2, 0x6f, 0};

void Assembler::dword(u32 value) {
  for (int n = 0; n < 4; ++n) byte(value >> 8 * n & 0xff);
}

void Assembler::finish() {
  while (bytes_.size() % 4 != 0) byte(0x90);
  const size_t first = bytes_.size();
  for (const u32 value : constants_) dword(value);
  const auto patch = [&](size_t at, i64 target) {
    const u32 distance = static_cast<u32>(target - static_cast<i64>(at) - 4);
    std::memcpy(&bytes_[at], &distance, 4);
  };
  for (const Fixup& fixup : fixups_) patch(fixup.at, labels_[fixup.to]);
  for (const Use& use : uses_) patch(use.at, static_cast<i64>(first) + 4 * use.constant);
}

i32 Assembler::constant(u32 value) {
  for (size_t n = 0; n < constants_.size(); ++n) {
    if (constants_[n] == value) return static_cast<i32>(n);
  }
  constants_.push_back(value);
  return static_cast<i32>(constants_.size()) - 1;
}

i32 Assembler::table(const u32 (&values)[16]) {
  const i32 first = static_cast<i32>(constants_.size());
  for (const u32 value : values) constants_.push_back(value);
  return first;
}

i32 Assembler::table(u32 (*value)(u32)) {
  for (const auto& [known, first] : tables_) {
    if (known == value) return first;
  }
  const i32 first = static_cast<i32>(constants_.size());
  for (u32 n = 0; n < 16; ++n) constants_.push_back(value(n));
  tables_.push_back({value, first});
  return first;
}

// Operands ----------------------------------------------------------------------------------------

/// `unit` is what a displacement of 8 bits counts.
void Assembler::modrm(u8 reg, Mem rm, u32 unit) {
  const u32 middle = (reg & 7u) << 3;
  if (rm.constant >= 0) {
    byte(middle | 5);
    uses_.push_back({bytes_.size(), rm.constant});
    dword(0);
    return;
  }
  const i32 step = static_cast<i32>(unit), scaled = rm.disp / step;
  const bool small = rm.disp % step == 0 && scaled >= -128 && scaled <= 127;
  const bool none = rm.disp == 0 && (rm.base & 7) != rbp;
  const u32 mode = none ? 0 : small ? 0x40 : 0x80;
  if (rm.index != kNoIndex || (rm.base & 7) == rsp) {
    byte(mode | middle | 4);
    byte((rm.index == kNoIndex ? 4u : rm.index & 7u) << 3 | (rm.base & 7u));
  } else {
    byte(mode | middle | (rm.base & 7u));
  }
  if (none) return;
  if (small) byte(static_cast<u32>(scaled) & 0xff);
  else dword(static_cast<u32>(rm.disp));
}

void Assembler::rex(bool wide, u8 reg, Mem rm, bool always) {
  const bool index = rm.index != kNoIndex && rm.index >= 8;
  const u32 bits = u32{wide} << 3 | u32{reg >= 8} << 2 | u32{index} << 1 | u32{rm.constant < 0 && rm.base >= 8};
  if (bits != 0 || always) byte(0x40 | bits);
}
void Assembler::rex(bool wide, u8 reg, u8 rm, bool always) {
  const u32 bits = u32{wide} << 3 | u32{reg >= 8} << 2 | u32{rm >= 8};
  if (bits != 0 || always) byte(0x40 | bits);
}

/// The prefix of a vector instruction; `x` and `b` are the upper bits of the last operand.
void Assembler::evex(Evex op, u8 reg, u8 a, u8 k, bool broadcast, bool x, bool b) {
  byte(0x62);
  byte(u32{(reg & 8) == 0} << 7 | u32{!x} << 6 | u32{!b} << 5 | u32{(reg & 16) == 0} << 4 | op.map);
  byte(u32{op.wide} << 7 | (~u32{a} & 15) << 3 | 4 | op.prefix);
  byte(2u << 5 | u32{broadcast} << 4 | u32{(a & 16) == 0} << 3 | k);
  byte(op.opcode);
}
void Assembler::vex(u8 map, u8 prefix, bool wide, bool large, u8 reg, u8 a, bool x, bool b) {
  byte(0xc4);
  byte(u32{reg < 8} << 7 | u32{!x} << 6 | u32{!b} << 5 | map);
  byte(u32{wide} << 7 | (~u32{a} & 15) << 3 | u32{large} << 2 | prefix);
}

// Control -----------------------------------------------------------------------------------------

void Assembler::jump(Label to) {
  byte(0xe9);
  fixups_.push_back({bytes_.size(), to});
  dword(0);
}
void Assembler::jump_if(Condition condition, Label to) {
  byte(0x0f);
  byte(0x80u | condition);
  fixups_.push_back({bytes_.size(), to});
  dword(0);
}
void Assembler::jump_register(Reg to) {
  rex(false, 0, to);
  byte(0xff);
  modrm(4, to);
}
void Assembler::call(Reg to) {
  vzeroupper();
  rex(false, 0, to);
  byte(0xff);
  modrm(2, to);
}
void Assembler::push(Reg reg) {
  rex(false, 0, reg);
  byte(0x50u | (reg & 7u));
}
void Assembler::pop(Reg reg) {
  rex(false, 0, reg);
  byte(0x58u | (reg & 7u));
}
void Assembler::vzeroupper() {
  for (const u32 value : {0xc5u, 0xf8u, 0x77u}) byte(value);
}

// Scalar ------------------------------------------------------------------------------------------

void Assembler::move(Reg to, u64 value) {
  const bool wide = value >> 32 != 0;
  rex(wide, 0, to);
  byte(0xb8u | (to & 7u));
  dword(static_cast<u32>(value));
  if (wide) dword(static_cast<u32>(value >> 32));
}
void Assembler::move(Reg to, Reg from, bool wide) {
  rex(wide, from, to);
  byte(0x89);
  modrm(from, to);
}
void Assembler::load(Reg to, Mem from, bool wide) {
  rex(wide, to, from);
  byte(0x8b);
  modrm(to, from, 1);
}
void Assembler::store(Mem to, Reg from, bool wide) {
  rex(wide, from, to);
  byte(0x89);
  modrm(from, to, 1);
}
void Assembler::store(Mem to, u32 value, bool wide) {
  rex(wide, 0, to);
  byte(0xc7);
  modrm(0, to, 1);
  dword(value);
}
void Assembler::store_byte(Mem to, u8 value) {
  rex(false, 0, to);
  byte(0xc6);
  modrm(0, to, 1);
  byte(value);
}
void Assembler::alu(u8 what, Reg to, Reg with, bool wide) {
  rex(wide, with, to);
  byte(8u * what + 1);
  modrm(with, to);
}
void Assembler::alu(u8 what, Reg to, i32 with, bool wide) {
  rex(wide, 0, to);
  byte(0x81);
  modrm(what, to);
  dword(static_cast<u32>(with));
}
void Assembler::alu(u8 what, Mem to, i32 with, bool wide) {
  rex(wide, 0, to);
  byte(0x81);
  modrm(what, to, 1);
  dword(static_cast<u32>(with));
}
void Assembler::alu(u8 what, Mem to, Reg with, bool wide) {
  rex(wide, with, to);
  byte(8u * what + 1);
  modrm(with, to, 1);
}
void Assembler::test(Reg a, Reg b, bool wide) {
  rex(wide, b, a);
  byte(0x85);
  modrm(b, a);
}
void Assembler::bit_not(Reg reg, bool wide) {
  rex(wide, 0, reg);
  byte(0xf7);
  modrm(2, reg);
}
void Assembler::negate(Reg reg, bool wide) {
  rex(wide, 0, reg);
  byte(0xf7);
  modrm(3, reg);
}
void Assembler::shift(u8 what, Reg reg, bool wide) {
  rex(wide, 0, reg);
  byte(0xd3);
  modrm(what, reg);
}
void Assembler::shift(u8 what, Reg reg, u8 by, bool wide) {
  rex(wide, 0, reg);
  byte(0xc1);
  modrm(what, reg);
  byte(by);
}
void Assembler::multiply(Reg to, Reg with, bool wide) {
  rex(wide, to, with);
  byte(0x0f);
  byte(0xaf);
  modrm(to, with);
}
void Assembler::set_if(Condition condition, Mem to) {
  rex(false, 0, to);
  byte(0x0f);
  byte(0x90u | condition);
  modrm(0, to, 1);
}
void Assembler::move_if(Condition condition, Reg to, Reg from, bool wide) {
  rex(wide, to, from);
  byte(0x0f);
  byte(0x40u | condition);
  modrm(to, from);
}
void Assembler::load_byte(Reg to, Mem from) {
  rex(false, to, from);
  byte(0x0f);
  byte(0xb6);
  modrm(to, from, 1);
}
void Assembler::sign_extend(Reg to, Reg from) {
  rex(true, to, from);
  byte(0x63);
  modrm(to, from);
}
void Assembler::increment(Mem what) {
  rex(true, 0, what);
  byte(0xff);
  modrm(0, what, 1);
}
void Assembler::prefetch(Mem what) {
  rex(false, 0, what);
  byte(0x0f);
  byte(0x18);
  modrm(1, what, 1);
}
void Assembler::count_zeros(Reg to, Reg from, bool wide) {
  byte(0xf3);
  rex(wide, to, from);
  byte(0x0f);
  byte(0xbc);
  modrm(to, from);
}

void Assembler::count_ones(Reg to, Mem from) {
  byte(0xf3);
  rex(true, to, from);
  byte(0x0f);
  byte(0xb8);
  modrm(to, from, 1);
}
void Assembler::add_to(Mem to, Reg from) {
  rex(true, from, to);
  byte(0x01);
  modrm(from, to, 1);
}

// Masks -------------------------------------------------------------------------------------------

void Assembler::mask_load(u8 k, Mem from) {
  if (!wide()) return mask_load8(k, from);
  vex(1, 0, false, false, k, 0, from.index != kNoIndex && from.index >= 8, from.base >= 8);
  byte(0x90);
  modrm(k, from, 1);
}
void Assembler::mask_store(Mem to, u8 k) {
  if (!wide()) return mask_store8(to, k);
  vex(1, 0, false, false, k, 0, to.index != kNoIndex && to.index >= 8, to.base >= 8);
  byte(0x91);
  modrm(k, to, 1);
}
void Assembler::mask_not(u8 to, u8 from) {
  if (!wide()) return mask_two8(0, to, from, from);
  vex(1, 0, false, false, to, 0, false, false);
  byte(0x44);
  modrm(to, static_cast<Reg>(from));
}
void Assembler::mask_and(u8 to, u8 a, u8 b) {
  if (!wide()) return mask_two8(0xdb, to, a, b);
  vex(1, 0, false, true, to, a, false, false);
  byte(0x41);
  modrm(to, static_cast<Reg>(b));
}
void Assembler::mask_or(u8 to, u8 a, u8 b) {
  if (!wide()) return mask_two8(0xeb, to, a, b);
  vex(1, 0, false, true, to, a, false, false);
  byte(0x45);
  modrm(to, static_cast<Reg>(b));
}
void Assembler::mask_xor(u8 to, u8 a, u8 b) {
  if (!wide()) return mask_two8(0xef, to, a, b);
  vex(1, 0, false, true, to, a, false, false);
  byte(0x47);
  modrm(to, static_cast<Reg>(b));
}
void Assembler::mask_shift_right(u8 to, u8 from, u8 by) {
  vex(3, 1, true, false, to, 0, false, false);
  byte(0x30);
  modrm(to, static_cast<Reg>(from));
  byte(by);
}
void Assembler::mask_test(u8 k) {
  vex(1, 0, false, false, k, 0, false, false);
  byte(0x98);
  modrm(k, static_cast<Reg>(k));
}
void Assembler::jump_if_any(u8 k, Label to) {
  if (wide()) mask_test(k);
  else mask_bits8(r8, k), test(r8, r8, false);
  jump_if(kNonZero, to);
}
void Assembler::jump_if_none(u8 k, Label to) {
  if (wide()) mask_test(k);
  else mask_bits8(r8, k), test(r8, r8, false);
  jump_if(kZero, to);
}
void Assembler::jump_unless_all(u8 k, Label to) {
  if (wide()) mask_test(k);  // the carry flag: all ones
  else mask_bits8(r8, k), alu(7, r8, 0xff, false);
  jump_if(wide() ? kAboveEqual : kNonZero, to);
}
void Assembler::jump_if_all(u8 k, Label to) {
  if (wide()) mask_test(k);
  else mask_bits8(r8, k), alu(7, r8, 0xff, false);
  jump_if(wide() ? kBelow : kZero, to);
}
void Assembler::jump_unless_bit(Reg reg, u8 bit, Label to) {
  rex(false, 0, reg);
  byte(0x0f);
  byte(0xba);
  modrm(4, reg);
  byte(bit);
  jump_if(kAboveEqual, to);
}
void Assembler::mask_move(Reg to, u8 k) {
  if (!wide()) return mask_bits8(to, k);
  vex(1, 0, false, false, to, 0, false, false);
  byte(0x93);
  modrm(to, static_cast<Reg>(k));
}

void Assembler::jump_if_nan(u8 value, u8 k, u8 within, Label to) {
  constexpr u8 unordered = 3;
  if (wide()) {
    vector_immediate(kComparePs, k, value, value, unordered, within);
    return jump_if_any(k, to);
  }
  plain8(kComparePs, kTemporary, value, value);
  byte(unordered);
  plain8({2, 1, 0x0e, 0}, kTemporary, 0, slot8(within));  // vtestps
  jump_if(kNonZero, to);
}
void Assembler::note_nan(u8 k, u8 within) {
  if (!wide()) store_mask8(k, kTemporary, within);
}
void Assembler::mask_odd(u8 k) {
  if (!wide()) {
    plain8(kMoveAnywhere, kMaskVector, 0, Mem{.constant = table([](u32 n) { return n % 2 != 0 ? ~0u : 0u; })});
    return store_mask8(k, kMaskVector, 0);
  }
  move(rax, 0xaaaa);
  mask_from(k, rax);
}
void Assembler::mask_from(u8 k, Reg from) {
  vex(1, 0, false, false, k, 0, false, from >= 8);
  byte(0x92);
  modrm(k, from);
}

// Vectors -----------------------------------------------------------------------------------------

void Assembler::vector(Evex op, u8 to, u8 a, u8 b, u8 k) {
  if (!wide()) return vector8(op, to, a, b, k);
  evex(op, to, a, k, false, (b & 16) != 0, (b & 8) != 0);
  modrm(to, static_cast<Reg>(b & 15));
}
void Assembler::vector(Evex op, u8 to, u8 a, Mem b, u8 k, bool broadcast) {
  if (!wide()) return vector8(op, to, a, b, k);
  const bool splats = op.map == kBroadcast.map && op.opcode == kBroadcast.opcode;
  evex(op, to, a, k, broadcast, b.index != kNoIndex && b.index >= 8, b.constant < 0 && b.base >= 8);
  modrm(to, b, broadcast || splats ? 4 : 64);
}
void Assembler::vector_store(Mem to, u8 from) {
  if (!wide()) return plain8({1, 2, 0x7f, 0}, from, 0, to);
  evex({1, 1, 0x7f, 0}, from, 0, 0, false, to.index != kNoIndex && to.index >= 8, to.base >= 8);
  modrm(from, to, 64);
}
void Assembler::vector_immediate(Evex op, u8 to, u8 a, u8 b, u8 immediate, u8 k) {
  if (!wide()) return immediate8(op, to, a, b, immediate, k);
  vector(op, to, a, b, k);
  byte(immediate);
}
void Assembler::vector_shift(u8 what, u8 to, u8 from, u8 by) {
  vector({1, 1, 0x72, 0}, what, to, from);
  byte(by);
}
void Assembler::vector_shift_q(u8 what, u8 to, u8 from, u8 by) {
  vector({1, 1, 0x73, 1}, what, to, from);
  byte(by);
}

void Assembler::vector_first(Reg to, u8 from) {
  if (!wide()) {
    vex(1, 1, false, false, from, 0, false, to >= 8);
    byte(0x7e);
    return modrm(from, to);
  }
  byte(0x62);
  byte(u32{(from & 8) == 0} << 7 | 1u << 6 | u32{to < 8} << 5 | u32{(from & 16) == 0} << 4 | 1);
  byte(15u << 3 | 4 | 1);
  byte(8);
  byte(0x7e);
  modrm(from, to);
}
void Assembler::load_quarter(u8 to, Mem from) {
  evex({1, 2, 0x6f, 0}, to, 0, 0, false, from.index != kNoIndex && from.index >= 8, from.base >= 8);
  bytes_[bytes_.size() - 2] &= 0x9f;  // 128 bits
  modrm(to, from, 16);
}
void Assembler::insert_quarter(u8 to, Mem from, u8 quarter) {
  evex({3, 1, 0x38, 0}, to, to, 0, false, from.index != kNoIndex && from.index >= 8, from.base >= 8);
  modrm(to, from, 16);
  byte(quarter);
}
void Assembler::store_quarter(Mem to, u8 from, u8 quarter) {
  evex({3, 1, 0x39, 0}, from, 0, 0, false, to.index != kNoIndex && to.index >= 8, to.base >= 8);
  modrm(from, to, 16);
  byte(quarter);
}
void Assembler::gather(u8 to, Reg base, u8 index, i32 disp, u8 k) {
  if (wide()) return indexed(0x90, to, base, index, disp, k);
  gather8(to, base, index, disp, k);
}
void Assembler::indexed(u8 opcode, u8 reg, Reg base, u8 index, i32 disp, u8 k, bool wide) {
  evex({2, 1, opcode, wide}, reg, index & 16, k, false, (index & 8) != 0, base >= 8);
  byte(0x80u | (reg & 7u) << 3 | 4);
  byte((index & 7u) << 3 | (base & 7u));
  dword(static_cast<u32>(disp));
}

}  // namespace ckemu::x86
