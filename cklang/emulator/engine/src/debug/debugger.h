// SPDX-License-Identifier: MIT
//
// One launch under control: it runs until something holds, forward and, since an execution repeats itself, back.
#pragma once

#include <functional>

#include "debug/conditions.h"
#include "debug/execution.h"

namespace ckemu {

/// Until when a launch runs.
enum class Until : u64 {
  Breakpoint,        // a breakpoint holds
  Count,             // the wave has executed `count` instructions, now or before
  Line,              // the wave comes to another source line, or to a breakpoint
  LineBefore,        // back: the wave was at the beginning of a line
  BreakpointBefore,  // back: a breakpoint held
  Step,              // all waves together have executed `count` instructions, now or before
  End,               // all waves have ended
};

struct Goal {
  Until until = Until::End;
  u64 group = 0, wave = 0;
  u64 count = 0;  // Line: 1 runs over calls
};

enum class Reason : u64 { None, Start, Breakpoint, Step, Interrupt, WaveEnded, Ended, Fault, Stuck };

struct Stop {
  Reason reason = Reason::Start;
  u64 breakpoint = 0;
};

class Debugger {
 public:
  /// `interrupted` is asked now and then while the launch runs.
  Debugger(const Launch& launch, std::function<bool()> interrupted);
  const Stop& run(const Goal& goal);
  /// Where it has stopped last.
  const Stop& stop() const { return stop_; }

  Conditions conditions;
  Execution execution;

 private:
  using Condition = std::function<Reason(Wave&)>;
  Stop forward(const Condition& holds);
  Reason loop(const Condition& holds);
  bool is_focus(const Wave& wave) const { return wave.id == goal_.wave && execution.turn().number == goal_.group; }
  u64 executed() const;
  Stop towards(const Goal& goal);
  Stop to_count(u64 count);
  Stop to_step(u64 step);
  Stop to_breakpoint();
  Stop to_line();
  Stop back_to_line();
  Stop back_to_breakpoint();
  Reason at_breakpoint(Wave& wave);

  std::function<bool()> interrupted_;
  Goal goal_;
  Stop stop_;
  bool has_run_ = false;
  u64 hit_ = 0;
};

}  // namespace ckemu
