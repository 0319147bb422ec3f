// SPDX-License-Identifier: MIT
//
// Scalar operations as x86 instructions on the registers in memory.
#pragma once

#include "core/program.h"
#include "translate/assembler.h"

namespace ckemu::translate {

/// Writes the instruction; false if it is none that can be translated.
bool emit_scalar(x86::Assembler& a, const Code& code);

/// Where a wave's scc is.
x86::Mem scc_place();

}  // namespace ckemu::translate
