// SPDX-License-Identifier: MIT
//
// Finds barriers that not all threads of a workgroup reach together: some of a wave's are disabled, another wave waits
// at another barrier, or has ended. GPUs count waves and not threads, so that such a kernel may seem to work. Lanes
// that have returned count as missing: HIP demands all threads of the workgroup.
#pragma once

#include "core/program.h"

namespace ckemu {

/// Whether an instruction is looked at: it waits at a barrier, or ends a wave for which others may wait.
bool concerns_barriers(Op op);

/// Checks the barrier or the end of a wave that `code` is.
void check_barrier(Wave& wave, const Code& code);

}  // namespace ckemu
