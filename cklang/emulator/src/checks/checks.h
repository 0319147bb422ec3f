// SPDX-License-Identifier: MIT
//
// What kernels are checked for besides faults: off unless it is asked for. Launches that run without
// checks do not see any of this.
#pragma once

#include <memory>

#include "checks/bounds.h"
#include "checks/races.h"
#include "checks/waits.h"

namespace ckemu {

enum Check : u32 { kCheckWaits = 1, kCheckRaces = 2, kCheckUninitialized = 4, kCheckMemory = 8,
                   // Asked for by the emulator itself: a kernel was given an address that only the host knows.
                   kCheckHost = 16 };
/// The words that users ask with, in the order of the bits.
inline constexpr const char* kCheckNames[] = {"waits", "races", "uninitialized", "memory"};

/// The checks of launches from now on.
u32 checks_asked();
void ask_checks(u32 checks);

/// The checks of one wave.
struct Checks {
  std::unique_ptr<Waits> waits;
  LocalChecks* local = nullptr;  // of the whole workgroup
  std::unique_ptr<GlobalChecks> global;

  /// Called before each instruction; raises what is found.
  void before(Wave& wave, const Code& code) const {
    if (waits) waits->before(wave, code);
    if (local != nullptr) local->before(wave, code);
    if (global) global->before(wave, code);
  }
};

}  // namespace ckemu
