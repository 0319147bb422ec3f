// SPDX-License-Identifier: MIT
//
// A workgroup: its waves, their registers, local memory and scratch. It runs on one host thread at
// a time; its waves take turns, each until it ends, waits or has had its share.
#pragma once

#include <memory>
#include <vector>

#include "checks/deadlock.h"
#include "core/launch.h"
#include "core/wave.h"

namespace ckemu {

/// Memory from one aligned block, which workgroups that follow each other use again.
class Arena {
 public:
  ~Arena();
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// At least `bytes` bytes, aligned to 64: zeros if they are new, else as they were.
  u8* reserve(size_t bytes, bool& fresh);
  size_t size() const { return size_; }

 private:
  u8* memory_ = nullptr;
  size_t size_ = 0;
};

/// Whose registers, local memory and scratch lie where in a workgroup's memory.
struct Layout {
  u64 program = 0;  // its serial number
  size_t lds = 0, registers = 0, scratch = 0;
  u32 waves = 0;
  bool operator==(const Layout&) const = default;
};

struct Workgroup {
  u32 id[3] = {};
  const Launch* launch = nullptr;
  std::vector<Wave> waves;
  std::vector<Checks> checks;        // of each wave, if anything is checked
  std::unique_ptr<WaveOrder> order;  // if races are looked for among its waves
  LocalChecks local_checks;
  GlobalAccesses accesses;
  Arena arena;
  Layout layout;
  Silence silence;
  bool done = false;
  u64 phase = 0;                                // of the split barrier: how often all waves have arrived
  u32 arrived = 0;                              // waves that have arrived in this phase
  std::unique_ptr<GlobalChecks> global_checks;  // of the launch: a workgroup that is checked is in no other

  /// Prepares the workgroup with linear number `number` for its first instruction.
  void begin(const Launch& launch, u64 number);
  /// Runs for at most about `budget` instructions.
  void run(Counters& counters, Broadcasts& spread, i64 budget);
  bool signal(Wave& wave);
  /// Waves that have not ended.
  u32 living() const;
  /// How many instructions a wave executes in its turn.
  i64 share();
  /// The wave that has the first turn of a round.
  u32 first_turn();
  /// Lets waves go on that wait at the barrier: all of them have arrived, or have ended.
  void release_barrier();

 private:
  void begin_checks(u64 number);
  void place(u64 number);
  void start_wave(u32 wave, u8* registers, u8* scratch);
  void put_trap_registers(Wave& wave) const;
  void complete_phase();
  void release_waiting();

  u8* cleared_memory(const Layout& wanted);

  Dice dice_;  // of the launch's order
};

/// A workgroup that a launch has left, of this program if there is one: its memory need not be asked for
/// again. Null if there is none.
std::unique_ptr<Workgroup> take_spare(const Program& program);
/// Keeps a workgroup for launches to come, as long as there is room.
void keep_spare(std::unique_ptr<Workgroup>&& group);

}  // namespace ckemu
