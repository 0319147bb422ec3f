// SPDX-License-Identifier: MIT
//
// Writes x86-64 machine code: the few scalar instructions, the mask instructions and the vector
// instructions that translated code is made of. They are those of AVX-512, for 16 lanes at a time; for
// 8 lanes each becomes what AVX2 has for it (avx2.cpp), and masks are vectors in memory.
#pragma once

#include <utility>
#include <vector>

#include "core/base.h"

namespace ckemu::x86 {

enum Reg : u8 { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };
constexpr u8 kNoIndex = 0xff;

/// [base + index + disp], or the constant that `Assembler::constant` has numbered.
struct Mem {
  Reg base = rbx;
  u8 index = kNoIndex;
  i32 disp = 0;
  i32 constant = -1;
};

/// A place in the code that jumps may name before it is known.
using Label = u32;

/// Condition codes of jcc and setcc.
enum Condition : u8 {
  kBelow = 2,
  kAboveEqual = 3,
  kZero = 4,
  kNonZero = 5,
  kBelowEqual = 6,
  kAbove = 7,
  kLess = 12,
  kGreaterEqual = 13,
  kLessEqual = 14,
  kGreater = 15,
  kOverflow = 0,
  kCarry = 2
};

/// The opcode of an AVX-512 instruction: map (1: 0F, 2: 0F38, 3: 0F3A), prefix (1: 66, 2: F3, 3: F2), W.
struct Evex {
  u8 map, prefix, opcode, wide;
};

constexpr Evex kAddPs{1, 0, 0x58, 0}, kMulPs{1, 0, 0x59, 0}, kSubPs{1, 0, 0x5c, 0}, kMinPs{1, 0, 0x5d, 0},
    kDivPs{1, 0, 0x5e, 0}, kMaxPs{1, 0, 0x5f, 0}, kSqrtPs{1, 0, 0x51, 0}, kFma231{2, 1, 0xb8, 0}, kAddD{1, 1, 0xfe, 0},
    kSubD{1, 1, 0xfa, 0}, kAnd{1, 1, 0xdb, 0}, kOr{1, 1, 0xeb, 0}, kXor{1, 1, 0xef, 0}, kAndNot{1, 1, 0xdf, 0},
    kMulLoD{2, 1, 0x40, 0}, kMulUdq{1, 1, 0xf4, 1}, kMulDq{2, 1, 0x28, 1}, kShlV{2, 1, 0x47, 0}, kShrV{2, 1, 0x45, 0},
    kSarV{2, 1, 0x46, 0}, kMinI{2, 1, 0x39, 0}, kMaxI{2, 1, 0x3d, 0}, kMinU{2, 1, 0x3b, 0}, kMaxU{2, 1, 0x3f, 0},
    kBlendD{2, 1, 0x64, 0}, kMove{1, 1, 0x6f, 0}, kBroadcast{2, 1, 0x58, 0}, kCvtI2F{1, 0, 0x5b, 0},
    kCvtU2F{1, 3, 0x7a, 0}, kCvtF2I{1, 2, 0x5b, 0}, kCvtF2U{1, 0, 0x78, 0}, kShlQ{1, 1, 0x73, 1}, kShlVQ{2, 1, 0x47, 1},
    kUnpackLow{1, 1, 0x62, 0}, kPermute{2, 1, 0x36, 0}, kPopcount{2, 1, 0x55, 0}, kLeadingZeros{2, 1, 0x44, 0};

// Shared with avx2.cpp, which knows what AVX2 has in their place.
constexpr Evex kComparePs{1, 0, 0xc2, 0}, kCompareI{3, 1, 0x1f, 0}, kCompareU{3, 1, 0x1e, 0}, kRange{3, 1, 0x50, 0},
    kTestNone{2, 2, 0x27, 0}, kTestDwords{2, 1, 0x27, 0}, kTestBytes{2, 1, 0x26, 0}, kCompareBytes{3, 1, 0x3e, 0},
    kMoveBytes{1, 3, 0x6f, 0}, kWords{2, 2, 0x33, 0};

/// The stack frame of translated code: masks of 8 lanes each, and vectors for whatever an instruction needs.
constexpr i32 kFrameMasks = 8 * 32, kFrameVectors = 6 * 64;

class Assembler {
 public:
  /// For vectors of 16 lanes, or of 8.
  explicit Assembler(u32 lanes = 16) : lanes_(lanes) {}
  u32 lanes() const { return lanes_; }
  bool wide() const { return lanes_ == 16; }
  /// Vector registers that may be used.
  u8 registers() const { return wide() ? 32 : 13; }
  const std::vector<u8>& code() const { return bytes_; }
  Label label() {
    labels_.push_back(-1);
    return static_cast<Label>(labels_.size() - 1);
  }
  void bind(Label label) { labels_[label] = static_cast<i64>(bytes_.size()); }
  /// Writes the constants behind the code, and the distances of jumps and constants.
  void finish();
  /// Overwrites 32 bits.
  void patch(size_t at, u32 value) { std::memcpy(&bytes_[at], &value, 4); }
  /// The number of the first of 16 constants, `value(0)` to `value(15)`.
  i32 table(u32 (*value)(u32 number));
  /// The number of the first of 16 constants.
  i32 table(const u32 (&values)[16]);
  /// The number of a 32-bit constant, for Mem::constant.
  i32 constant(u32 value);

  // Control
  void jump(Label to);
  void jump_if(Condition condition, Label to);
  void jump_register(Reg to);
  /// Calls C++ with the upper halves of vectors clean: the C library is compiled for SSE, which Intel's cores execute
  /// at a crawl while they are not.
  void call(Reg to);
  void ret() { byte(0xc3); }
  void push(Reg reg);
  void pop(Reg reg);
  void vzeroupper();

  // Scalar; `wide`: 64 bits instead of 32
  void move(Reg to, u64 value);
  void move(Reg to, Reg from, bool wide = true);
  void load(Reg to, Mem from, bool wide);
  void store(Mem to, Reg from, bool wide);
  void store(Mem to, u32 value, bool wide);  // sign-extended if wide
  void store_byte(Mem to, u8 value);
  /// add 0, or 1, adc 2, sbb 3, and 4, sub 5, xor 6, cmp 7
  void alu(u8 what, Reg to, Reg with, bool wide);
  void alu(u8 what, Reg to, i32 with, bool wide);
  void alu(u8 what, Mem to, i32 with, bool wide);
  void alu(u8 what, Mem to, Reg with, bool wide);
  void test(Reg a, Reg b, bool wide);
  void bit_not(Reg reg, bool wide);
  void negate(Reg reg, bool wide);
  /// shl 4, shr 5, sar 7; by cl, or by a number
  void shift(u8 what, Reg reg, bool wide);
  void shift(u8 what, Reg reg, u8 by, bool wide);
  void multiply(Reg to, Reg with, bool wide);  // the low half
  void set_if(Condition condition, Mem to);
  void move_if(Condition condition, Reg to, Reg from, bool wide);
  void load_byte(Reg to, Mem from);
  void sign_extend(Reg to, Reg from);  // of 32 bits
  void increment(Mem what);
  void prefetch(Mem what);
  void count_zeros(Reg to, Reg from, bool wide);
  void count_ones(Reg to, Mem from);  // of 64 bits
  void add_to(Mem to, Reg from);      // 64 bits

  // Masks of 16 lanes
  void mask_load(u8 k, Mem from);
  void mask_store(Mem to, u8 k);
  void mask_not(u8 to, u8 from);
  void mask_and(u8 to, u8 a, u8 b);
  void mask_or(u8 to, u8 a, u8 b);
  void mask_xor(u8 to, u8 a, u8 b);
  void mask_shift_right(u8 to, u8 from, u8 by);
  void jump_if_any(u8 k, Label to);
  void jump_if_none(u8 k, Label to);
  void jump_unless_all(u8 k, Label to);
  void jump_if_all(u8 k, Label to);
  /// Where a lane of `within` has a NaN; `k` may be clobbered. There `note_nan` makes the lanes with one the mask.
  void jump_if_nan(u8 value, u8 k, u8 within, Label to);
  void note_nan(u8 k, u8 within);
  void mask_odd(u8 k);  // every other lane, from the second on
  /// Goes to `to` unless a bit is set.
  void jump_unless_bit(Reg reg, u8 bit, Label to);
  void mask_move(Reg to, u8 k);
  void mask_from(u8 k, Reg from);  // of 16 lanes

  // Vectors. `k` masks with merging if it is not 0
  void vector(Evex op, u8 to, u8 a, u8 b, u8 k = 0);
  void vector(Evex op, u8 to, u8 a, Mem b, u8 k = 0, bool broadcast = false);
  void vector_load(u8 to, Mem from, u8 k = 0) { vector(kMove, to, 0, from, k); }
  void vector_store(Mem to, u8 from);
  void vector_immediate(Evex op, u8 to, u8 a, u8 b, u8 immediate, u8 k = 0);
  /// Shifts dwords by a number: shr 2, sar 4, shl 6
  void vector_shift(u8 what, u8 to, u8 from, u8 by);
  void vector_shift_q(u8 what, u8 to, u8 from, u8 by);  // quadwords: shr 2, shl 6

  /// The first dword.
  void vector_first(Reg to, u8 from);
  void vector_load_anywhere(u8 to, Mem from) { vector({1, 2, 0x6f, 0}, to, 0, from); }
  void vector_store_anywhere(Mem to, u8 from) { vector({1, 2, 0x7f, 0}, from, 0, to); }
  /// Quarters of eight lanes in the order that two bits each of `order` give. AVX2 alone.
  void order_quarters(u8 to, u8 from, u8 order);
  /// 128 bits into the lowest quarter, and into another one.
  void load_quarter(u8 to, Mem from);
  void insert_quarter(u8 to, Mem from, u8 quarter);
  void store_quarter(Mem to, u8 from, u8 quarter);
  /// Eight lanes of dwords (or, if wide, quadwords) at base + 64-bit index + disp.
  void gather_far(u8 to, Reg base, u8 index, i32 disp, u8 k, bool wide) {
    indexed(0x91, to, base, index, disp, k, wide);
  }
  void scatter_far(Reg base, u8 index, i32 disp, u8 from, u8 k, bool wide) {
    indexed(0xa1, from, base, index, disp, k, wide);
  }
  /// Dwords at base + index + disp of the lanes of `k`, which is cleared.
  void gather(u8 to, Reg base, u8 index, i32 disp, u8 k);
  void scatter(Reg base, u8 index, i32 disp, u8 from, u8 k) { indexed(0xa0, from, base, index, disp, k); }

 private:
  void indexed(u8 opcode, u8 reg, Reg base, u8 index, i32 disp, u8 k, bool wide = false);
  void byte(u32 value) { bytes_.push_back(static_cast<u8>(value)); }
  void dword(u32 value);
  void modrm(u8 reg, Reg rm) { byte(0xc0u | (reg & 7u) << 3 | (rm & 7u)); }
  void modrm(u8 reg, Mem rm, u32 unit);
  void rex(bool wide, u8 reg, Mem rm, bool always = false);
  void rex(bool wide, u8 reg, u8 rm, bool always = false);
  void evex(Evex op, u8 reg, u8 a, u8 k, bool broadcast, bool x, bool b);
  void vex(u8 map, u8 prefix, bool wide, bool large, u8 reg, u8 a, bool x, bool b);

  void mask_test(u8 k);  // of 16 lanes; ZF: none is set, CF: all are

  // For 8 lanes (avx2.cpp)
  static constexpr u8 kTemporary = 13, kTemporary2 = 14, kMaskVector = 15;  // that nobody else may use
  static Mem slot8(u8 k) { return {rsp, kNoIndex, 32 * k}; }
  void plain8(Evex op, u8 to, u8 a, u8 b);
  void plain8(Evex op, u8 to, u8 a, Mem b);
  void vector8(Evex op, u8 to, u8 a, u8 b, u8 k);
  void vector8(Evex op, u8 to, u8 a, Mem b, u8 k);
  void immediate8(Evex op, u8 to, u8 a, u8 b, u8 immediate, u8 k);
  void blend8(u8 to, u8 no, u8 yes, u8 k);
  void compare8(u8 k, u8 a, u8 b, u8 condition, bool is_unsigned, bool bytes, u8 within);
  void words8(u8 to, u8 from);
  void test8(Evex op, u8 k, u8 a, u8 b, u8 within);
  void invert8(u8 value);
  void store_mask8(u8 k, u8 value, u8 within);
  void load_mask8(u8 value, u8 k);
  void mask_bits8(Reg to, u8 k);
  void mask_load8(u8 k, Mem from);
  void mask_store8(Mem to, u8 k);
  void mask_two8(u8 opcode, u8 to, u8 a, u8 b);
  void gather8(u8 to, Reg base, u8 index, i32 disp, u8 k);

  struct Fixup {
    size_t at;
    Label to;
  };
  struct Use {
    size_t at;
    i32 constant;
  };
  const u32 lanes_;
  std::vector<u8> bytes_;
  std::vector<i64> labels_;
  std::vector<Fixup> fixups_;
  std::vector<Use> uses_;
  std::vector<u32> constants_;
  std::vector<std::pair<u32 (*)(u32), i32>> tables_;  // and their first constants
};

}  // namespace ckemu::x86
