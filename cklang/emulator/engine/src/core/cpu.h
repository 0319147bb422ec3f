// SPDX-License-Identifier: MIT
//
// What the CPU can do. Code whose lane width is a parameter is in the library for both widths, and the
// wider one is chosen where the CPU has it.
#pragma once

#include "core/base.h"

namespace ckemu {

/// Whether the CPU has AVX-512 (F, DQ, BW, VL), and the system keeps its registers.
bool cpu_has_avx512();

/// Bits of the vectors in use: 512 where the CPU has AVX-512, else 256.
u32 vector_bits();
/// Chooses 256 or 512; false where the CPU has no such vectors.
bool set_vector_bits(u32 bits);

}  // namespace ckemu
