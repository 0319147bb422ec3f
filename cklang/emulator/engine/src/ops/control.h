// SPDX-License-Identifier: MIT
//
// Where control goes: shared by the kinds of branches.
#pragma once

#include "core/program.h"
#include "core/wave.h"

namespace ckemu {

/// The address behind the instruction.
inline u64 return_address(const Wave& wave, const Code& code) { return wave.program->image() + code.pc + 4; }

/// Goes on where the instruction's offset leads.
void branch(Wave& wave, const Code& code);

/// Goes on at an absolute address; raises if no code is there.
void jump_to(Wave& wave, u64 address);

/// What the clocks of the GPU count, in nanoseconds.
u64 nanoseconds(const Wave& wave);

}  // namespace ckemu
