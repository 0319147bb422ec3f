// SPDX-License-Identifier: MIT
//
// The instruction loop.
#pragma once

#include "wave.h"

namespace ckemu {

/// Runs `wave` until it ends, waits at a barrier, sleeps, or has executed `budget` instructions.
/// @return the instructions executed (those since the last change of mode).
i64 run_wave(Wave& wave, i64 budget);

}  // namespace ckemu
