// SPDX-License-Identifier: MIT
//
// The vector and mask instructions for 8 lanes, as AVX2 has them. A mask is a vector of all ones or zeros a
// lane, in the frame of translated code; masked instructions compute all lanes and blend.
#include "translate/assembler.h"

namespace ckemu::x86 {

namespace {

constexpr Evex kLoad{1, 2, 0x6f, 0}, kStore{1, 2, 0x7f, 0}, kEqualD{1, 1, 0x76, 0}, kEqualB{1, 1, 0x74, 0},
    kMinBytes{1, 1, 0xda, 0}, kPackWords{2, 1, 0x2b, 0};
constexpr u8 kWithin = 0, kRangeMax = 5;

bool same(Evex a, Evex b) { return a.map == b.map && a.prefix == b.prefix && a.opcode == b.opcode; }
u32 lane_bit(u32 n) { return 1u << n % 8; }

}  // namespace

void Assembler::plain8(Evex op, u8 to, u8 a, u8 b) {
  vex(op.map, op.prefix, op.wide != 0, true, to, a, false, b >= 8);
  byte(op.opcode);
  modrm(to, static_cast<Reg>(b));
}
void Assembler::plain8(Evex op, u8 to, u8 a, Mem b) {
  vex(op.map, op.prefix, op.wide != 0, true, to, a, b.index != kNoIndex && b.index >= 8, b.constant < 0 && b.base >= 8);
  byte(op.opcode);
  modrm(to, b, 1);
}

// Masks -------------------------------------------------------------------------------------------

void Assembler::load_mask8(u8 value, u8 k) { plain8(kLoad, value, 0, slot8(k)); }
/// `within` is a mask whose other lanes become zero; 0: none.
void Assembler::store_mask8(u8 k, u8 value, u8 within) {
  if (within != kWithin) plain8(kAnd, value, value, slot8(within));
  plain8(kStore, value, 0, slot8(k));
}
void Assembler::mask_bits8(Reg to, u8 k) {
  load_mask8(kMaskVector, k);
  vex(1, 0, false, true, to, 0, false, kMaskVector >= 8);
  byte(0x50);  // vmovmskps
  modrm(to, static_cast<Reg>(kMaskVector));
}
void Assembler::mask_load8(u8 k, Mem from) {
  plain8({2, 1, 0x78, 0}, kMaskVector, 0, from);  // vpbroadcastb
  const Mem bits{.constant = table(lane_bit)};
  plain8(kAnd, kMaskVector, kMaskVector, bits);
  plain8(kEqualD, kMaskVector, kMaskVector, bits);
  store_mask8(k, kMaskVector, kWithin);
}
void Assembler::mask_store8(Mem to, u8 k) {
  mask_bits8(r8, k);
  rex(false, r8, to, true);
  byte(0x88);
  modrm(r8, to, 1);
}
/// `opcode` is that of the vector instruction; 0: the other lanes of `a`.
void Assembler::mask_two8(u8 opcode, u8 to, u8 a, u8 b) {
  load_mask8(kMaskVector, a);
  if (opcode != 0) plain8({1, 1, opcode, 0}, kMaskVector, kMaskVector, slot8(b));
  else invert8(kMaskVector);
  store_mask8(to, kMaskVector, kWithin);
}
void Assembler::invert8(u8 value) {
  plain8(kEqualD, kTemporary2, kTemporary2, kTemporary2);
  plain8(kXor, value, value, kTemporary2);
}

// Vectors -----------------------------------------------------------------------------------------

/// Bytes of `yes` where the mask has ones, else of `no`.
void Assembler::blend8(u8 to, u8 no, u8 yes, u8 k) {
  load_mask8(kMaskVector, k);
  plain8({3, 1, 0x4c, 0}, to, no, yes);
  byte(kMaskVector << 4);
}

/// Dwords whose low halves are words to words, in the lower half of `to`.
void Assembler::words8(u8 to, u8 from) {
  plain8(kAnd, kTemporary, from, Mem{.constant = table([](u32) { return 0xffffu; })});
  plain8(kPackWords, kTemporary, kTemporary, kTemporary);
  order_quarters(to, kTemporary, 0x08);
}
void Assembler::order_quarters(u8 to, u8 from, u8 order) {
  plain8({3, 1, 0x00, 1}, to, 0, from);
  byte(order);
}

/// vptestm and vptestnm: whether a & b is not zero, or is.
void Assembler::test8(Evex op, u8 k, u8 a, u8 b, u8 within) {
  plain8(kAnd, kTemporary, a, b);
  plain8(kXor, kTemporary2, kTemporary2, kTemporary2);
  plain8(same(op, kTestBytes) ? kEqualB : kEqualD, kTemporary, kTemporary, kTemporary2);
  if (!same(op, kTestNone)) invert8(kTemporary);
  store_mask8(k, kTemporary, within);
}

void Assembler::vector8(Evex op, u8 to, u8 a, u8 b, u8 k) {
  if (same(op, kBlendD)) return blend8(to, a, b, k);
  if (same(op, kWords)) return words8(b, to);
  for (const Evex& test : {kTestNone, kTestDwords, kTestBytes}) {
    if (same(op, test)) return test8(op, to, a, b, k);
  }
  const bool moves = same(op, kMove) || same(op, kMoveBytes);
  if (k != 0 && moves) return blend8(to, to, b, k);
  const u8 result = k != 0 ? kTemporary : to;
  plain8(moves ? kLoad : op, result, moves ? 0 : a, b);
  if (k != 0) blend8(to, to, kTemporary, k);
}
void Assembler::vector8(Evex op, u8 to, u8 a, Mem b, u8 k) {
  if (same(op, kBlendD)) {
    load_mask8(kMaskVector, k);
    plain8({3, 1, 0x4c, 0}, to, a, b);
    return byte(kMaskVector << 4);
  }
  const u8 result = k != 0 ? kTemporary : to;
  plain8(same(op, kMove) ? kLoad : op, result, a, b);
  if (k != 0) blend8(to, to, kTemporary, k);
}

/// Conditions of integers: 0 equal, 1 less, 2 not above, 4 to 6 their opposites; 3 never, 7 always.
void Assembler::compare8(u8 k, u8 a, u8 b, u8 condition, bool is_unsigned, bool bytes, u8 within) {
  const Evex equal = bytes ? kEqualB : kEqualD, least = bytes ? kMinBytes : is_unsigned ? kMinU : kMinI;
  const u8 basic = condition & 3;
  if (basic == 3) {
    plain8(kXor, kTemporary, kTemporary, kTemporary);
  } else if (basic == 0) {
    plain8(equal, kTemporary, a, b);
  } else if (basic == 2) {  // the lesser one is a
    plain8(least, kTemporary, a, b);
    plain8(equal, kTemporary, kTemporary, a);
  } else {  // the lesser one is not b
    plain8(least, kTemporary, a, b);
    plain8(equal, kTemporary, kTemporary, b);
  }
  if ((condition >= 4) != (basic == 1)) invert8(kTemporary);
  store_mask8(k, kTemporary, within);
}

void Assembler::immediate8(Evex op, u8 to, u8 a, u8 b, u8 immediate, u8 k) {
  if (same(op, kCompareI)) return compare8(to, a, b, immediate, false, false, k);
  if (same(op, kCompareU)) return compare8(to, a, b, immediate, true, false, k);
  if (same(op, kCompareBytes)) return compare8(to, a, b, immediate, true, true, k);
  if (same(op, kRange)) {  // the zeros in order, which minps and maxps have not; NaN is seen to apart
    const bool largest = immediate == kRangeMax;
    plain8(largest ? kMaxPs : kMinPs, kTemporary, a, b);
    plain8(largest ? kMaxPs : kMinPs, kTemporary2, b, a);
    return plain8(largest ? kAnd : kOr, to, kTemporary, kTemporary2);
  }
  if (same(op, kComparePs)) {
    plain8(op, kTemporary, a, b);
    byte(immediate);
    return store_mask8(to, kTemporary, k);
  }
  plain8(op, to, a, b);
  byte(immediate);
}

void Assembler::gather8(u8 to, Reg base, u8 index, i32 disp, u8 k) {
  load_mask8(kMaskVector, k);
  vex(2, 1, false, true, to, kMaskVector, index >= 8, base >= 8);
  byte(0x90);
  byte(0x80u | (to & 7u) << 3 | 4);
  byte((index & 7u) << 3 | (base & 7u));
  dword(static_cast<u32>(disp));
}

}  // namespace ckemu::x86
