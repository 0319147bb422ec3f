// SPDX-License-Identifier: MIT
//
// Executes the memory operations of a wave later than they are issued, as a GPU may: at the latest where a
// wait covers them, or where the wave ends. What an operation reads from registers it reads as it issues.
//
// Operations that the hardware keeps in order stay in order: those of buffers, global memory and scratch
// among each other, and those of LDS. A flat operation comes behind both. Loads read memory at the next
// barrier at the latest, since others may write there behind it (checks/wave_order.h), but give their results
// to registers where they are waited for.
#pragma once

#include <deque>
#include <vector>

#include "checks/in_flight.h"
#include "core/schedule.h"

namespace ckemu {

class Late {
 public:
  Late(u64 schedule, u64 workgroup, u32 wave) : always_(schedule == kLatest), dice_(schedule, workgroup * 64 + wave) {}

  /// Executes what is due before `code`; whether `code` itself is put off.
  bool before(Wave& wave, const Code& code);

 private:
  /// A register, and what was in it.
  struct Register {
    Kind kind;
    u32 index;
    std::vector<u32> value;
  };
  /// What a load has read: bits of its result, and which of them it has.
  struct Result {
    std::vector<u32> bits, mask;
  };
  struct Operation {
    const Code* code;
    u64 number;
    u64 exec;
    u32 m0;
    bool load;
    bool has_read = false;
    std::vector<Register> registers;
    Result result;
  };
  enum Lane : u8 { kVectorMemory, kLocalMemory, kScalarMemory, kQueues };
  using Queue = std::deque<Operation>;

  static Lane queue_of(const Inst& inst);
  static Operation snapshot(const Wave& wave, const Code& code, u64 number);
  static void swap(Wave& wave, Register& each);
  static void swap_masks(Wave& wave, Operation& operation);
  static void enter(Wave& wave, Operation& operation);
  static void leave(Wave& wave, Operation& operation, bool keep_results);
  static void execute(Wave& wave, Operation& operation);
  static void read(Wave& wave, Operation& operation);
  static void deliver(Wave& wave, const Operation& operation);
  void finish(Wave& wave, u64 number);
  void empty(Wave& wave, Queue& queue);
  void read_all(Wave& wave);

  bool always_;
  Dice dice_;
  InFlight under_way_;
  Queue queues_[kQueues];
};

}  // namespace ckemu
