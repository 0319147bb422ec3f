// SPDX-License-Identifier: MIT
//
// Instruction modifiers that any vector operation may carry: abs and neg, op_sel, SDWA, DPP, and
// on the result clamp, omod and the choice of a half. A modified instruction is a plain one between
// a step that prepares its operands in spare rows and a step that delivers its result.
#pragma once

#include "core/program.h"

namespace ckemu {

/// What `modified` does around the plain form.
struct ModifierPlan {
  u8 prepared = 0;                // mask of sources that go through spare rows
  bool redirected = false;        // the result goes through a spare row
  const char* refusal = nullptr;  // a modifier that is not emulated here
};

ModifierPlan plan_modifiers(const Inst& inst);

/// The lane that a DPP control reads for lane `l`, or -1.
int dpp_source(u32 ctrl, int l);

/// The handler of a modified instruction; its `link` is the plain form.
void modified(Wave& wave, const Code& code);

/// The handler of an integer operation that saturates (clamp); null for those that cannot leave their
/// type's range, for which clamp changes nothing.
Handler saturating_handler(Op op);

}  // namespace ckemu
