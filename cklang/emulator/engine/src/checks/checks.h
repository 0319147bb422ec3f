// SPDX-License-Identifier: MIT
//
// What kernels are checked for besides faults: off unless it is asked for. Launches that run without
// checks do not see any of this.
#pragma once

#include <memory>

#include "checks/accesses.h"
#include "checks/barriers.h"
#include "checks/bounds.h"
#include "checks/global_races.h"
#include "checks/hazards.h"
#include "checks/numeric.h"
#include "checks/private_memory.h"
#include "checks/races.h"
#include "checks/range.h"
#include "checks/recording.h"
#include "checks/stretch.h"
#include "checks/unwritten.h"
#include "checks/waits.h"
#include "checks/wave_order.h"
#include "core/late.h"

namespace ckemu {

class Journal;
/// Notes what `code` is about to write (checks/orders.h).
void note_writes(Journal& journal, Wave& wave, const Code& code);

enum Check : u32 {
  kCheckWaits = 1,
  kCheckRaces = 2,
  kCheckUninitialized = 4,
  kCheckMemory = 8,
  kCheckHazards = 16,
  kCheckGlobalRaces = 32,
  kCheckAll = 63,
  // Of what programs may mean, so by themselves.
  kCheckRange = 64,
  kCheckNumeric = 128,
  kCheckSchedule = 256,
  kCheckUnwritten = 512,
  kCheckBarriers = 1024,
  // Asked for by the emulator itself: a kernel was given an address that only the host knows.
  kCheckHost = 1u << 31,
  // The clock wants to know what waves execute (checks/recording.h).
  kCheckTiming = 1u << 30
};
/// The words that users ask with, in the order of the bits, and one for those of kCheckAll.
inline constexpr const char* kCheckNames[] = {"waits",    "races",        "uninitialized", "memory",
                                              "hazards",  "global_races", "range",         "numeric",
                                              "schedule", "unwritten",    "barriers",      "all"};

/// The checks of launches from now on.
u32 checks_asked();
void ask_checks(u32 checks);

/// The checks of one wave.
struct Checks {
  WaveOrder* order = nullptr;  // of the whole workgroup; before those that ask it
  std::unique_ptr<Waits> waits;
  LocalChecks* local = nullptr;    // of the whole workgroup
  GlobalChecks* global = nullptr;  // of the whole workgroup
  std::unique_ptr<Hazards> hazards;
  GlobalRaces* between = nullptr;  // of the whole launch
  WaveRecord* record = nullptr;
  std::unique_ptr<Numeric> numeric;
  std::unique_ptr<PrivateChecks> own;  // of the lanes' own memory
  Journal* journal = nullptr;          // of the whole launch
  bool range = false;
  bool barriers = false;
  std::unique_ptr<Late> late;          // if memory operations are put off
  bool written = false;                // whether reads of device memory come after writes
  bool stepwise = false;               // whether each instruction is checked where it is executed
  GlobalAccesses* accesses = nullptr;  // of the whole workgroup: room for those of one instruction
  bool may_pass = false;               // whether a kernel goes on behind a report

  /// Called before each instruction that is interpreted; raises what is found, unless the kernel may go on
  /// (checks/reports.h).
  void before(Wave& wave, const Code& code);
  /// Called before the first instruction of a stretch, where all of it will be executed.
  void before(Wave& wave, const Stretch& stretch);
  /// Whether `code` is executed later.
  bool put_off(Wave& wave, const Code& code) const { return late && late->before(wave, code); }
  /// The Concerns (checks/stretch.h) of instructions that somebody looks at.
  u8 asked() const;
  /// Whether something looks at each instruction by itself.
  bool by_instruction() const { return stepwise || late || numeric; }
  /// Whether `code` has been checked with what came before it.
  bool covers(const Code& code) const { return &code == covered_ && covered_ != covered_end_; }

 private:
  void check(Wave& wave, const Stretch& stretch);
  void check_plain(Wave& wave, const Stretch& stretch);
  void check_one(Wave& wave, const Stretch& stretch);
  void check_values(Wave& wave, const Code& code);

  const Code *covered_ = nullptr, *covered_end_ = nullptr;  // what has been checked with earlier instructions
};

/// `Checks::before`, for translated code.
void check_stretch(Wave* wave, const Stretch* stretch);

}  // namespace ckemu
