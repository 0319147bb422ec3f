// SPDX-License-Identifier: MIT
//
// Dense products that follow each other, executed together: each operand is turned to a panel once, and the
// products that are added to the same accumulator read and write it once.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

constexpr u32 kMostSteps = 32;  // products on one accumulator

/// An operand, and where its panel lies among the run's.
struct RunOperand {
  u16 row;
  Type type;
  u32 at;
};
/// The panels of a product.
struct RunStep {
  u32 a, b;
};
/// Products on one accumulator, in their order; `c` is what the first of them adds to.
struct RunChain {
  u16 d;
  Source c;
  std::vector<RunStep> steps;
};

/// Operands and products that are seen to at once, each from the one to before the other.
struct RunPart {
  u32 operands[2], codes[2];
};

/// Products of one shape. No operand is written by one of them, and no accumulator of a chain is another's.
struct MatrixRun {
  int size = 0, depth = 0;
  bool integer = false;
  std::vector<RunOperand> operands;
  std::vector<RunChain> chains;
  std::vector<const Code*> codes;  // the products, as the program has them
  std::vector<RunPart> parts;
};

/// Whether an instruction is a product that a run may have.
bool joins_run(const Code& code);
/// Turns the operands of a part to panels, before their registers are overwritten.
void begin_part(Wave& wave, const MatrixRun& run, u32 part);
/// Begins the last part, and multiplies.
void execute_run(Wave& wave, const MatrixRun& run);

}  // namespace ckemu
