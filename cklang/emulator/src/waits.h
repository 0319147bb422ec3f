// SPDX-License-Identifier: MIT
//
// Finds missing s_waitcnt: registers that a load will still write may be neither read nor overwritten
// before a wait that covers the load. Off unless it is asked for; launches that run without it do not
// see any of this.
//
// The rules are those of CDNA. Buffer, global and scratch operations (vmcnt) and LDS operations
// (lgkmcnt) finish in the order of issue; scalar loads in any order, flat operations too, so that while
// one is under way only a wait for 0 tells anything. Stores read their data as they issue, so their
// registers are free at once.
#pragma once

#include <vector>

#include "program.h"

namespace ckemu {

class Waits {
 public:
  explicit Waits(u32 rows) : row_(rows) {}

  /// Checks what `code` reads and writes, and notes what it starts or waits for. Called before each
  /// instruction; raises where a wait is missing.
  void before(Wave& wave, const Code& code);

 private:
  struct Operation {
    const Code* code;
    u64 number;  // in order of issue, from 1
    bool ordered;
  };
  /// Who will write a register: the number of the operation, 0 for nobody.
  struct Pending {
    u64 number = 0;
    const Code* code = nullptr;
    bool vector_memory = false, ordered = false;
  };
  using Queue = std::vector<Operation>;

  void check(Wave& wave, const Code& code, const Pending& pending, bool scalar, u32 index, const char* verb) const;
  void check_reads(Wave& wave, const Code& code) const;
  void check_writes(Wave& wave, const Code& code) const;
  void start(const Code& code, bool vector_memory, bool local, bool ordered);
  void wait(Queue& queue, u32 left);
  void finish(const Operation& operation);

  std::vector<Pending> row_;
  Pending scalar_[128];
  Queue vector_memory_, local_;
  u64 issued_ = 0;
};

/// Whether launches from now on are checked.
bool waits_checked();
void check_waits(bool on);

}  // namespace ckemu
