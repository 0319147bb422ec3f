// SPDX-License-Identifier: MIT
//
// The hardware registers of RDNA that s_getreg_b32 reads.
#pragma once

#include "core/wave.h"

namespace ckemu {

/// The value of hardware register `id`; a fault if the emulator lacks it.
u32 rdna_register(Wave& wave, u32 id);

}  // namespace ckemu
