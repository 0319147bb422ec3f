// SPDX-License-Identifier: MIT
//
// Loads that only guess what a loop will compare and swap: as programs begin it, and compilers what they make of
// atomic operations that a GPU lacks. A wrong guess is corrected in the loop.
#pragma once

#include "core/program.h"

namespace ckemu {

/// Whether the load `code`, which the wave is about to execute, is of a dword or two, or of a part, that the code ahead
/// compares and swaps. It is looked at for one lane.
bool guesses_ahead(Wave& wave, const Code& code);

}  // namespace ckemu
