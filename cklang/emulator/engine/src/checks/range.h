// SPDX-License-Identifier: MIT
//
// Finds accesses of buffers that only the range in the buffer's descriptor keeps from memory: loads that
// give 0 and stores that are dropped. Kernels may rely on it, so it is asked for by itself. Lanes that a kernel moves
// by 2 GiB so that they are out of range are masked, and not found.
#pragma once

#include "core/program.h"

namespace ckemu {

/// Checks what `code` accesses in a buffer.
void check_range(Wave& wave, const Code& code);

}  // namespace ckemu
