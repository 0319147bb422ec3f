// SPDX-License-Identifier: MIT
//
// A launch as a sequence of single instructions, the same one each time: its workgroups and waves take turns as
// on one thread of the scheduler. It can begin again, on the memory that it began with.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "checks/global_races.h"
#include "checks/orders.h"
#include "core/launch.h"
#include "core/workgroup.h"

namespace ckemu {

/// A workgroup that has begun.
struct LiveGroup {
  u64 number = 0;
  Workgroup group;
  std::vector<u64> executed;  // instructions, by wave
};

class Execution {
 public:
  explicit Execution(const Launch& launch);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// Goes back to before the first instruction.
  void restart();
  /// The wave whose turn it is; null if there is none: all have ended, or the launch has failed.
  Wave* next();
  /// Executes the next instruction of the wave that `next` has returned. Faults land where the thread's frame says.
  void step();
  /// The wave that executes has failed.
  void fail(const Fault& fault);

  /// Instructions executed since the beginning.
  u64 steps() const { return steps_; }
  /// The workgroup of the wave whose turn it is.
  const LiveGroup& turn() const { return *current_; }
  /// The wave whose turn it is, or that has failed; null if there is none.
  const Wave* wave_at_turn() const;
  /// The workgroup with this number, if it has begun and not ended.
  LiveGroup* live(u64 number) const;
  const std::vector<std::unique_ptr<LiveGroup>>& groups() const { return groups_; }
  /// Whether all workgroups have begun that are numbered lower.
  u64 begun() const { return begun_; }
  const Launch& launch() const { return launch_; }
  const Fault& fault() const { return fault_; }
  /// Changes of memory so far.
  u64 progress() const { return counters_.progress; }
  /// Takes over what the launch has executed.
  void finish(LaunchResult& result) const;

 private:
  Wave& turn_wave() const { return current_->group.waves[(first_ + turn_) % current_->group.waves.size()]; }
  void begin_counting();
  bool take();
  void begin_group();
  void end_turn(const Wave& wave);
  void end_round();
  void begin_round();
  void retire();

  Launch launch_;
  Journal journal_;
  std::unique_ptr<GlobalRaces> races_;
  Dice dice_;
  Counters counters_;
  std::vector<u64> counts_;
  Broadcasts spread_;
  std::vector<std::unique_ptr<LiveGroup>> groups_, spare_;
  std::deque<LiveGroup*> waiting_;
  LiveGroup* current_ = nullptr;
  u64 begun_ = 0, steps_ = 0, furthest_ = 0;
  i64 slice_ = 0, share_ = 0;
  u32 first_ = 0, turn_ = 0, ended_ = 0, blocked_ = 0, slept_ = 0;  // of the round
  Fault fault_;
};

}  // namespace ckemu
