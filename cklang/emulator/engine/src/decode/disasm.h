// SPDX-License-Identifier: MIT
//
// From `Inst` to the text that clang's assembler prints and accepts.
#pragma once

#include "core/base.h"
#include "decode/isa.h"

namespace ckemu {

using AsmText = Text<320>;

/// Writes `inst` of `family` as one line of assembly.
void disasm(Family family, const Inst& inst, AsmText& text);

}  // namespace ckemu

/// Calls `emit` with the offset and the text of each instruction of `code`.
/// `arch` is a GPU; of RDNA, "gfx1100:wave64" has waves of 64 lanes.
/// @return the number of bytes decoded; if less than `bytes`, the last text emitted says why
///         decoding stopped; -1 if `arch` is unknown.
extern "C" int ckemu_disassemble(const char* arch, const void* code, size_t bytes,
                                 void (*emit)(void* context, uint64_t offset, const char* text), void* context);
