// SPDX-License-Identifier: MIT
//
// Dual instructions (VOPD): two vector operations of one instruction word, both of which read their
// operands before either writes.
#pragma once

#include "core/program.h"

namespace ckemu {

/// The two operations as codes of their own; the detail of a dual instruction's code.
struct DualPair {
  Code x, y;
};

/// The handler that runs the pair in an order in which neither overwrites what the other reads.
Handler dual_handler(const DualPair& pair);

/// The handler if there is no such order: the result of x waits in a spare row, x's destination.
void dual_through_spare(Wave& wave, const Code& code);

}  // namespace ckemu
