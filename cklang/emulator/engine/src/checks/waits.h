// SPDX-License-Identifier: MIT
//
// Finds missing waits for counters: registers that a load will still write may be neither read nor
// overwritten before a wait that covers the load.
//
// What the counters count is in checks/in_flight.h. Stores read their data as they issue, so their registers
// are free at once.
#pragma once

#include <vector>

#include "checks/in_flight.h"
#include "checks/stretch.h"

namespace ckemu {

class Waits {
 public:
  explicit Waits(u32 rows) : row_(2 * rows) {}

  /// Whether a load will still write one of the registers.
  bool concern(const RegisterSet& registers) const { return pending_.meets(registers); }

  /// Checks what an instruction reads and writes, and notes what it starts or waits for. Called before each but
  /// those whose registers are of no concern; raises where a wait is missing.
  void before(Wave& wave, const Stretch& one);

 private:
  using Counts = InFlight::Counts;
  using Operation = InFlight::Operation;
  /// Who will write a register: the number of the operation, 0 for nobody.
  struct Pending {
    u64 number = 0;
    const Code* code = nullptr;
    InFlight::Counter counter = InFlight::kMemory;
    bool ordered = false;
  };
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
  void finish(const Operation& operation);
  bool awaited(bool scalar, u32 index) const;

  std::vector<Pending> row_;  // of each vector register the lower half and the upper one
  Pending scalar_[kDiscarded + 16];
  RegisterSet pending_;  // for which somebody is known
  InFlight under_way_;
};

}  // namespace ckemu
