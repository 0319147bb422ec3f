// SPDX-License-Identifier: MIT
//
// A run of vector instructions, translated together: a loop over 16 or 8 lanes at a time in whose body a
// register is read from memory once, and written once. Scalar instructions that have nothing to do with
// them are executed before.
#pragma once

#include <span>
#include <vector>

#include "core/program.h"
#include "translate/assembler.h"

namespace ckemu::translate {

/// Registers of the scalar space, as a set.
struct ScalarSet {
  u64 words[3] = {};
  void add(u32 index, u32 count) {
    for (u32 n = index; n < index + count && n < 192; ++n) words[n / 64] |= u64{1} << n % 64;
  }
  bool meets(const ScalarSet& other) const {
    return ((words[0] & other.words[0]) | (words[1] & other.words[1]) | (words[2] & other.words[2])) != 0;
  }
  void join(const ScalarSet& other) {
    for (int n = 0; n < 3; ++n) words[n] |= other.words[n];
  }
};

class Lanes;
using VectorEmit = void (*)(Lanes& lanes, u32 detail);
/// Writes what goes to `unusual` where the handler must do, before any lanes are computed.
using Guard = void (*)(x86::Assembler& a, const Code& code, Family family, x86::Label unusual);

/// How an operation is translated, and which of its operands are masks of lanes.
struct VectorRow {
  Op op;
  VectorEmit emit;
  u32 detail = 0;
  bool floating = false;                               // f32: takes abs, neg, clamp and omod
  i8 mask_source = -1;                                 // slot
  u8 mask_result = 0;                                  // 1: dst, 2: dst2
  u8 constant_source = 0xff, constant_source2 = 0xff;  // slots that must be constants
  u8 local = 0;                                        // 1: reads local memory, 2: writes it
  u8 global = 0;                                       // the same of global memory
  u8 bytes = 0;                                        // of a lane, for the counts of global memory
  VectorEmit then = nullptr;                           // what follows, once all lanes have done the first
  bool reads_vcc = false;                              // as a mask, without an operand that says so
  bool wide = false;                                   // only 16 lanes at a time: AVX2 lacks what it takes
  Guard guard = nullptr;
};

/// The rows of operations on local memory, and of those on parts of dwords.
std::span<const VectorRow> division_rows();
std::span<const VectorRow> local_rows();
std::span<const VectorRow> narrow_rows();
std::span<const VectorRow> global_rows();
std::span<const VectorRow> buffer_rows();

/// Whether the addresses and data of an access to global memory are in vector registers.
bool global_fits(const Code& code);
/// Whether an access to a buffer, or to scratch, has one offset for each lane, or for all.
bool buffer_fits(const Code& code);
bool scratch_fits(const Code& code);

/// Whether a DPP instruction moves values within rows of 16 lanes, of all rows alike.
bool moves_in_rows(const Inst& inst);

/// The row of an instruction that can be translated for so many lanes at a time; else null.
const VectorRow* vector_row(const Code& code, u32 lanes);

/// Where a value of the lanes at hand comes from.
struct Holding {
  enum class Kind : u8 { Nothing, Temporary, Row, Scalar, Constant };
  Kind kind = Kind::Nothing;
  bool dirty = false;
  u32 pins = 0;  // how often the instruction at hand has asked for it: an operand may also be one of its constants
  u32 key = 0, stamp = 0;
};

/// Instructions that their handlers execute, where a guard has said so.
struct Unusual {
  std::vector<const Code*> codes;
  x86::Label enter, back;
};

/// Code that is needed rarely, behind the rest.
struct Rare {
  void (*emit)(x86::Assembler& a, const u8* registers);
  u8 registers[5];
  x86::Label enter, back;
};

/// What a translation of one instruction is written with: the values of the lanes at hand.
class Lanes {
 public:
  /// `all_enabled`: exec has all lanes.
  Lanes(x86::Assembler& assembler, std::vector<Rare>& rare, Family of, bool all_enabled)
      : a(assembler), family(of), rare_(rare), all_enabled_(all_enabled) {}

  /// A register with dword `part` of source `slot`, its sign changed as the instruction says.
  u8 source(int slot, u32 part = 0);
  /// The same without abs and neg.
  u8 plain_source(int slot, u32 part = 0);
  /// The destination's old value.
  u8 old(u32 part = 0) { return row(code_->dst + part); }
  u8 fresh();
  /// Who asked for the value does not need it any more in this instruction.
  void let_go(u8 value) { held_[value].pins -= held_[value].pins != 0 ? 1 : 0; }
  u8 constant(u32 value) { return hold(Holding::Kind::Constant, value); }
  /// `value` becomes dword `part` of the destination.
  void result(u8 value, u32 part = 0);
  /// The same for f32, with clamp and omod.
  void float_result(u8 value, u32 part = 0);
  /// Writes the register of source `slot` to memory, where the report of a fault looks for it.
  void settle_source(int slot, u32 part);
  /// Loads the lanes' bits of source `slot`.
  void mask(u8 k, int slot);
  /// Stores the lanes' bits; disabled ones are 0.
  void mask_result(u8 k, u16 scalar);
  /// What is done where a lane of `k` is set is written behind.
  void rarely(u8 k, void (*emit)(x86::Assembler&, const u8*), u8 r0, u8 r1, u8 r2, u8 r3, u8 r4 = 0);
  /// Where a lane of `k` is set, that is done in the place of what follows up to `back`, which the caller binds.
  void instead(u8 k, void (*emit)(x86::Assembler&, const u8*), const u8 (&registers)[5], x86::Label back);
  /// A NaN of `value` that comes from no operand becomes the GPU's.
  void settle(u8 value, u8 s0, u8 s1, u8 s2);

  const Code& code() const { return *code_; }
  const Inst& inst() const { return *code_->inst; }
  u32 constant_of(int slot) const { return code_->src[slot].row[0]; }

  void begin(const Code& code) { code_ = &code; }
  void end();
  void write_all();
  /// Whether an instruction needed more registers than there are.
  bool too_few() const { return too_few_; }

  x86::Assembler& a;
  const Family family;

 private:
  u8 moved(u8 value);
  u8 part_of(u8 value, u8 select, bool sign);
  u8 row(u32 number) { return hold(Holding::Kind::Row, number); }
  u8 hold(Holding::Kind kind, u32 key);
  void write_back(u8 number);

  std::vector<Rare>& rare_;
  const bool all_enabled_;
  const Code* code_ = nullptr;
  Holding held_[32];
  u32 clock_ = 0;
  bool too_few_ = false;
};

/// Four dwords of each of 16 lanes, in the lanes' order.
struct Quads {
  u8 of_lanes[4];
};
/// Turns rows to the lanes' dwords side by side, in fresh registers.
Quads lanes_of_rows(Lanes& lanes, const u8 (&rows)[4]);
/// Turns what lanes have side by side in `quads` to rows there; `free` are registers to use.
void rows_of_lanes(Lanes& lanes, const u8 (&quads)[4], const u8 (&free)[4]);

/// The instructions that are to be translated next.
class Section {
 public:
  Section(x86::Assembler& assembler, std::vector<Rare>& rare, u32 wave_lanes, Family family)
      : a_(assembler), rare_(rare), wave_lanes_(wave_lanes), family_(family) {}
  /// Takes an instruction up.
  void add(const Code& code, const VectorRow& row);
  /// Whether a scalar instruction must wait for those taken up.
  bool waits(const ScalarSet& reads, const ScalarSet& writes) const;
  /// Whether there is a store to global memory among them.
  bool stores_globally() const { return (global_ & 2) != 0; }
  /// Writes the loop.
  void flush();
  /// Whether an instruction needed more registers than there are: what is written must not be executed.
  bool too_few() const { return too_few_; }
  const std::vector<Unusual>& unusual() const { return unusual_; }

 private:
  struct Item {
    const Code* code;
    VectorEmit emit;
    const VectorRow* row;
  };
  x86::Assembler& a_;
  std::vector<Rare>& rare_;
  const u32 wave_lanes_;
  const Family family_;
  std::vector<Item> items_;
  std::vector<Unusual> unusual_;
  /// Whether what comes next must wait for the section to be written.
  bool conflicts(u8 access, u8 before) const { return (before & 2) != 0 ? access != 0 : access == 2 && before != 0; }
  void write_loop(bool all_enabled);
  void write_no_masks();
  void count_bytes();
  void write_guards(x86::Label done);

  ScalarSet scalars_, masks_, results_;
  bool too_few_ = false;
  u8 local_ = 0, global_ = 0;    // accesses: 1 reads, 2 writes
  u32 loaded_ = 0, stored_ = 0;  // bytes of a lane
};

// Registers of translated code.
constexpr x86::Reg kWave = x86::rbx, kVectors = x86::r12, kSegments = x86::r13, kLaneBytes = x86::r14,
                   kMaskBytes = x86::r15;
constexpr u8 kEnabled = 7, kDisabled = 6;  // masks

/// Vector `number` of those that an instruction may use as it likes, or dword `lane` of it.
inline x86::Mem scratch_at(u32 number, u32 lane = 0) {
  return {x86::rsp, x86::kNoIndex, x86::kFrameMasks + static_cast<i32>(64 * number + 4 * lane)};
}
inline x86::Mem scalar_at(u32 index) { return {kWave, x86::kNoIndex, static_cast<i32>(4 * index)}; }
inline x86::Mem mask_at(u32 index) { return {kWave, kMaskBytes, static_cast<i32>(4 * index)}; }
inline x86::Mem row_at(u32 row) { return {kVectors, kLaneBytes, static_cast<i32>(256 * row)}; }

}  // namespace ckemu::translate
