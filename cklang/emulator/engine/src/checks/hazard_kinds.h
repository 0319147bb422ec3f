// SPDX-License-Identifier: MIT
//
// The kinds of instructions that the rules about wait states name, and the registers by which two
// instructions depend on each other.
#pragma once

#include "core/program.h"

namespace ckemu {

/// What an instruction is, a bit each; an instruction is several.
enum HazardKind : u32 {
  kHazardValu = 1 << 0,   // vector ALU but matrix products
  kHazardTrans = 1 << 1,  // of these the transcendental ones
  kHazardPlain = 1 << 2,  // and those that are not
  kHazardDot = 1 << 3,
  kHazardNoDot = 1 << 4,    // vector ALU but dot products
  kHazardShifted = 1 << 5,  // writes its result to another place than the low bits
  kHazardDpp = 1 << 6,
  kHazardLane = 1 << 7,      // v_readlane, v_writelane
  kHazardReadLane = 1 << 8,  // v_readlane, v_readfirstlane
  kHazardAnyLane = 1 << 9,   // all three
  kHazardPermlane = 1 << 10,
  kHazardSwapLanes = 1 << 11,    // of these v_permlane*_swap
  kHazardCompareExec = 1 << 12,  // v_cmpx
  kHazardDivFmas = 1 << 13,
  kHazardFma64 = 1 << 14,
  kHazardXdl = 1 << 15,        // matrix products, but those of the next three
  kHazardF32Matrix = 1 << 16,  // of f32, from gfx942 on
  kHazardF64Small = 1 << 17,   // 4x4x4
  kHazardF64Large = 1 << 18,   // 16x16x4
  kHazardMemory = 1 << 19,     // buffer, global, flat, scratch
  kHazardLocal = 1 << 20,      // LDS
  kHazardSalu = 1 << 21,
  kHazardReadsM0 = 1 << 22,  // without naming it
  kHazardSetReg = 1 << 23,
  kHazardGetReg = 1 << 24,
  kHazardWideStore = 1 << 25,  // of more than 8 bytes a lane
  kHazardTwoPasses = 1 << 26,  // matrix products of two passes
};
constexpr u32 kHazardMatrix = kHazardXdl | kHazardF32Matrix | kHazardF64Small | kHazardF64Large;
constexpr u32 kHazardVector = kHazardValu | kHazardMatrix;
constexpr u32 kHazardData = kHazardMemory | kHazardLocal;

u32 hazard_kinds(const Inst& inst, Family family);

/// How many passes of 4 cycles a matrix product takes.
u32 passes_of(const MatrixShape& matrix, const Inst& inst);

/// Neighbouring registers.
struct RegisterSpan {
  bool scalar = false;
  u32 first = 0, count = 0;

  bool overlaps(const RegisterSpan& other) const {
    return scalar == other.scalar && first < other.first + other.count && other.first < first + count;
  }
  bool operator==(const RegisterSpan&) const = default;
};

/// The registers by which an instruction takes part in a hazard.
struct RegisterSpans {
  RegisterSpan at[8];
  u32 count = 0;

  void add(bool scalar, u32 first, u32 dwords) {
    if (count < 8) at[count++] = {scalar, first, dwords > 1 ? dwords : 1};
  }
  const RegisterSpan* begin() const { return at; }
  const RegisterSpan* end() const { return at + count; }
};

/// Registers of hardware stand behind the scalar ones.
constexpr u32 kHardwareRegisters = 1000;

/// What an instruction writes, exec and hardware registers too.
RegisterSpans written_registers(const Code& code);
/// The vector registers, or the scalar ones, that an instruction reads and its text names.
RegisterSpans read_registers(const Code& code, bool scalar);
/// vcc and exec, if an instruction reads whether they are zero as data.
RegisterSpans flagged_registers(const Code& code);
/// One source operand, if it is a register.
RegisterSpans source_register(const Code& code, u32 slot);
/// The data of a store.
RegisterSpans stored_registers(const Code& code);
/// The addend of a matrix product, and its factors (with the indices of a sparse one).
RegisterSpans addend_registers(const Code& code);
RegisterSpans factor_registers(const Code& code);

}  // namespace ckemu
