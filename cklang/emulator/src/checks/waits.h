// SPDX-License-Identifier: MIT
//
// Finds missing waits for counters: registers that a load will still write may be neither read nor
// overwritten before a wait that covers the load.
//
// What a counter counts:
//
//   CDNA   vmcnt    buffer, global and scratch loads and stores; flat ones too
//          lgkmcnt  LDS, scalar loads and messages; flat ones too
//   gfx11  vmcnt    buffer, global, scratch and flat loads (stores have vscnt, of which nothing is read)
//          lgkmcnt  as on CDNA
//   gfx12  loadcnt, dscnt, kmcnt: loads; LDS; scalar loads and messages. Flat loads in the first two
//
// Memory and LDS operations finish in the order of issue; scalar loads in any order, flat operations too,
// so that while one is under way only a wait for 0 tells anything. Stores read their data as they issue,
// so their registers are free at once.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

class Waits {
 public:
  explicit Waits(u32 rows) : row_(2 * rows) {}

  /// Checks what `code` reads and writes, and notes what it starts or waits for. Called before each
  /// instruction; raises where a wait is missing.
  void before(Wave& wave, const Code& code);

 private:
  enum Counter : u32 { kMemory, kLocal, kScalar, kCounters };
  /// The counters of an operation, a bit each, and whether it finishes in order in them.
  struct Counts {
    u32 counters = 0;
    bool ordered = true;
  };
  struct Operation {
    const Code* code;
    u64 number;  // in order of issue, from 1
    bool ordered;
  };
  /// Who will write a register: the number of the operation, 0 for nobody.
  struct Pending {
    u64 number = 0;
    const Code* code = nullptr;
    Counter counter = kMemory;
    bool ordered = false;
  };
  using Queue = std::vector<Operation>;

  static Counts counts_of(const Inst& inst, Family family);
  static Counter reported(u32 counters);
  static const char* name_of(Counter counter, Family family);
  struct Use {
    const char* verb;
    u32 index;
    bool scalar = false;
  };
  template <class Visit>
  void each_pending(bool scalar, u32 first, u32 dwords, u8 halves, u32 picked, Visit visit);
  void check(Wave& wave, const Code& code, const Pending& pending, const Use& use) const;
  void check_reads(Wave& wave, const Code& code);
  void check_writes(Wave& wave, const Code& code);
  void start(const Wave& wave, const Code& code, const Counts& counts);
  void wait_as_told(const Code& code, Family family);
  void wait(Counter counter, u32 left);
  void finish(const Operation& operation);

  std::vector<Pending> row_;  // of each vector register the lower half and the upper one
  Pending scalar_[kDiscarded + 16];
  Queue queues_[kCounters];
  u64 issued_ = 0;
};

}  // namespace ckemu
