// SPDX-License-Identifier: MIT
//
// Source lines of code offsets, from the DWARF line table that -gline-tables-only writes.
#pragma once

#include <string>

#include "decode/code_object.h"

namespace ckemu {

struct SourceLine {
  std::string file;
  u32 line = 0;
};

/// The line that the instruction at image offset `pc` came from; false without a line table.
bool find_line(const CodeObject& object, u64 pc, SourceLine& found);

}  // namespace ckemu
