// SPDX-License-Identifier: MIT
//
// The instruction loop.
#pragma once

#include "core/wave.h"

namespace ckemu {

/// Runs `wave` until it ends, waits at a barrier, sleeps, or has executed `budget` instructions.
/// @return about how many instructions it executed: all of `budget`, or the number of stops if it
///         ended earlier.
i64 run_wave(Wave& wave, i64 budget);

}  // namespace ckemu
