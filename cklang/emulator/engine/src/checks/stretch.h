// SPDX-License-Identifier: MIT
//
// Instructions that are checked together, before the first of them: neighbours that access no memory, wait for
// nothing, leave control where it is, and are executed by the same lanes. What matters of them is known before
// they run. Each of the others is a stretch of its own.
#pragma once

#include <memory>
#include <vector>

#include "checks/in_flight.h"
#include "core/mutex.h"
#include "core/program.h"

namespace ckemu {

/// Whether an instruction changes which lanes are enabled: it is the last of its stretch.
bool writes_exec(const Code& code);

/// Vector registers and scalar ones.
struct RegisterSet {
  static constexpr u32 kRowWords = 8, kScalarWords = 3;
  u64 rows[kRowWords] = {}, scalars[kScalarWords] = {};

  void add(bool scalar, u32 index) { word(scalar, index) |= u64{1} << index % 64; }
  void remove(bool scalar, u32 index) { word(scalar, index) &= ~(u64{1} << index % 64); }
  bool meets(const RegisterSet& other) const {
    u64 both = 0;
    for (u32 n = 0; n < kRowWords; ++n) both |= rows[n] & other.rows[n];
    for (u32 n = 0; n < kScalarWords; ++n) both |= scalars[n] & other.scalars[n];
    return both != 0;
  }

 private:
  u64& word(bool scalar, u32 index) { return scalar ? scalars[index / 64] : rows[index / 64]; }
};

/// What hazards make of a stretch: the states after it, by those before (checks/hazards.h).
struct HazardSteps {
  static constexpr u32 kCount = 8;
  mutable u64 at[kCount] = {};
};

/// What matters of an instruction, and whether anybody asks for it, a bit each.
enum Concern : u8 {
  kRegisters = 1,  // of every instruction, and its time
  kOrdering = 2,   // counters and barriers
  kLocalMemory = 4,
  kGlobalMemory = 8,
  kFences = 16,
  kAnyMemory = 32,  // of all that does not just compute
  kRecording = 64,  // that it is executed: of every instruction
  kBarriers = 128,
};

struct Stretch {
  const Code* first = nullptr;
  u32 count = 0;
  u32 number = 0;      // among those of the program
  bool plain = false;  // nothing of it matters but its registers and its time
  u8 concerns = kRegisters | kRecording;
  InFlight::Counting counting;  // of one instruction
  RegisterSet registers;        // read or written
  HazardSteps hazards;
};

/// The stretches of a program.
class Stretches {
 public:
  Stretches(size_t dwords, Family family) : family_(family), longest_(dwords), single_(dwords) {}
  /// The longest one from an instruction on.
  const Stretch& from(const Code& code) { return find(longest_, code, length_of(code)); }
  /// The instruction alone.
  const Stretch& alone(const Code& code) { return find(single_, code, 1); }
  /// So many instructions, at most those of the longest one.
  const Stretch& part(const Code& code, u32 count);

 private:
  using Places = std::vector<const Stretch*>;  // by dword; written under the lock, read without
  static u32 length_of(const Code& code);
  const Stretch& find(Places& places, const Code& code, u32 count);
  const Stretch& add(const Code& code, u32 count);

  const Family family_;
  Mutex lock_;
  Places longest_, single_;
  std::vector<std::unique_ptr<Stretch>> all_;
};

}  // namespace ckemu
