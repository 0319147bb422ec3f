// SPDX-License-Identifier: MIT
//
// f16 arithmetic in modes that flush denormals: what the CPU's own control bits do for f32 and f64.
#pragma once

#include "core/program.h"

namespace ckemu {

/// Whether the instruction computes with f16 numbers, whose denormals MODE[7:6] may flush.
bool computes_halves(const Inst& inst);

/// Runs an instruction with f16 denormals among its sources (unless bit 0 of `denormals`) and results
/// (unless bit 1) taken as zeros of the same sign.
void run_flushing(Wave& wave, const Code& code, u32 denormals);

}  // namespace ckemu
