// SPDX-License-Identifier: MIT
//
// Finds reads of device memory that nobody has written since it was allocated: neither a copy, nor a fill,
// nor a kernel. A lane's access counts as written if one of its dwords is: structures have holes.
#pragma once

#include "core/program.h"

namespace ckemu {

class GlobalAccesses;

/// Checks what `code` reads in global memory, and notes what it writes.
void check_written(Wave& wave, const Code& code, const GlobalAccesses& accesses);

}  // namespace ckemu
