// SPDX-License-Identifier: MIT
//
// What kernels are checked for besides faults: off unless it is asked for. Launches that run without
// checks do not see any of this.
#pragma once

#include <memory>

#include "checks/races.h"
#include "checks/waits.h"

namespace ckemu {

enum Check : u32 { kCheckWaits = 1, kCheckRaces = 2, kCheckUninitialized = 4 };

/// The checks of launches from now on.
u32 checks_asked();
void ask_checks(u32 checks);

/// The checks of one wave.
struct Checks {
  std::unique_ptr<Waits> waits;
  LocalChecks* local = nullptr;  // of the whole workgroup

  /// Called before each instruction; raises what is found.
  void before(Wave& wave, const Code& code) const {
    if (waits) waits->before(wave, code);
    if (local != nullptr) local->before(wave, code);
  }
};

}  // namespace ckemu
