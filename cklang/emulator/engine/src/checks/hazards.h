// SPDX-License-Identifier: MIT
//
// Finds pairs of instructions that the hardware does not keep apart and the program must: an s_nop or
// other instructions belong between them. The rules of CDNA are a table (hazard_rules.cpp), those of RDNA
// are few and of another form (hazards_rdna.cpp).
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "checks/hazard_kinds.h"
#include "checks/stretch.h"

namespace ckemu {

/// The registers by which the earlier instruction of a pair takes part.
enum class EarlierPart : u8 { Written, Stored, Addend, None };
/// And the later one. The addend of a matrix product may be the same registers as the earlier result, or
/// share a part of them.
enum class LaterPart : u8 {
  Read,
  ReadScalar,
  Written,
  Lane,
  FirstSource,
  SameAddend,
  OtherAddend,
  Factors,
  Exec,
  ZeroFlags,
  Vcc,
  M0,
  Hardware,
  None
};

/// A family of GPUs, a bit each.
enum HazardGpu : u8 { kOnGfx90a = 1, kOnGfx942 = 2, kOnGfx950 = 4 };
constexpr u8 kOnCdna = kOnGfx90a | kOnGfx942 | kOnGfx950, kFromGfx942 = kOnGfx942 | kOnGfx950;

/// Between an instruction of a kind and a later one that depends on it so many wait states must pass. Each
/// instruction is one, s_nop N is N + 1.
struct HazardRule {
  u8 gpus;
  u32 earlier;
  EarlierPart earlier_part;
  u32 later;
  LaterPart later_part;
  i8 states;
  bool passes = false;  // and as many more as the earlier product has passes
  u8 long_ones = 0;     // and these if it has more than two
  const char* text = nullptr;
};

/// The rules of a family; empty for RDNA.
const std::vector<HazardRule>& hazard_rules(Family family);

/// The checks of RDNA.
class DependencyHazards {
 public:
  DependencyHazards(Family family, u32 rows, bool wide);
  void before(Wave& wave, const Code& code, u32 kinds);

 private:
  /// When a vector register was last written, in vector instructions and in transcendental ones.
  struct Write {
    const Code* code = nullptr;
    u64 vector = 0, transcendental = 0;
  };
  void check_transcendental(Wave& wave, const Code& code) const;
  void check_forwarding(Wave& wave, const Code& code) const;
  void check_matrix(Wave& wave, const Code& code) const;
  void check_mask(Wave& wave, const Code& code);
  void note_masks(Wave& wave, const Code& code);
  void check_permlane(Wave& wave, const Code& code) const;
  void note(const Wave& wave, const Code& code, u32 kinds);
  void forget();

  const bool rdna3_, wide_;
  std::vector<Write> row_;
  u64 vectors_ = 0, transcendentals_ = 0;
  const Code* exec_write_ = nullptr;    // by a scalar instruction
  u64 exec_written_ = 0;                // after so many vector instructions
  const Code* matrix_ = nullptr;        // no vector instruction has come since
  const Code* compare_exec_ = nullptr;  // likewise
  const Code* mask_read_[128] = {};     // by a vector instruction
  const Code* mask_written_[128] = {};  // by a scalar one since
};

/// The instructions after which some rule still matters.
class HazardHistory {
 public:
  /// A rule that is broken, and by which instruction before.
  struct Broken {
    const HazardRule* rule = nullptr;
    const Code* earlier = nullptr;
    u32 between = 0;
  };
  /// The first rule that `code` breaks if it comes now.
  Broken check(const Code& code, u32 kinds, const std::vector<HazardRule>& rules);
  /// Adds `code`, after which as many wait states have passed as it takes.
  void add(const Code& code, u32 kinds, const std::vector<HazardRule>& rules);
  /// What tells it from others: each instruction, and the wait states since.
  std::vector<u64> key() const;

 private:
  struct Earlier {
    const Code* code;
    u32 kinds;
    u64 next;   // the wait state after it
    u32 reach;  // states after which no rule matters
    u32 later;  // kinds of instructions that a rule may forbid behind it
  };
  void drop_old();

  std::vector<Earlier> earlier_;
  u64 now_ = 0;
};

/// The histories that waves of a program have had, by number; 0 is the empty one. Straight code leads from
/// one to the same other each time, so it is looked at once for each.
class HazardHistories {
 public:
  HazardHistory at(u32 number);
  u32 number_of(const HazardHistory& history);

 private:
  Mutex lock_;
  std::vector<HazardHistory> all_{HazardHistory{}};
  std::map<std::vector<u64>, u32> numbers_{{{}, 0}};
};

class Hazards {
 public:
  Hazards(Program& program, u32 rows, u32 lanes);

  /// Goes past a stretch; false, and nothing is noted, if its instructions must be looked at one by one.
  bool pass(const Stretch& stretch);
  /// Checks `code` against the instructions before it; raises where one is too close.
  void before(Wave& wave, const Code& code);

 private:
  u32 after(const Stretch& stretch);

  const Family family_;
  const std::vector<HazardRule>& rules_;
  HazardHistories& histories_;
  std::unique_ptr<DependencyHazards> dependencies_;
  u32 history_ = 0;
};

/// Reports `code` and the earlier instruction.
[[noreturn]] void raise_hazard(Wave& wave, const Code& code, const Code& earlier, const Message& rule);

}  // namespace ckemu
