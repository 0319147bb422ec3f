// SPDX-License-Identifier: MIT
//
// From code words to `Inst`. The decoder refuses what the tables do not describe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/isa.h"

namespace ckemu {

/// Why a word sequence is no instruction of the family.
struct DecodeError {
  uint32_t words[4] = {};
  uint32_t word_count = 0;
  char reason[160] = {};
};

/// The family of a GPU, such as "gfx90a".
/// @return false if the name is unknown.
bool family_of(const char* arch, Family& family);

/// The GPU that a code object is built for, by the flag in its header; null if it is unknown.
const char* gpu_of(uint32_t machine);

/// Decodes the instruction at `words`, of which `count` are readable.
/// @return false, and `error` filled in, for an unknown opcode, a reserved bit that is set, an
///         operand that the encoding does not allow, or too few words.
/// `wave64` is for RDNA, where masks and matrix operands depend on the wave size.
bool decode(Family family, const uint32_t* words, size_t count, Inst& inst, DecodeError& error, bool wave64 = false);

/// The mnemonic without encoding suffix, e.g. "v_add_f32".
const char* mnemonic(Op op);

/// How the family's assembler spells the cache bits sc0, nt and sc1 (gfx12 has none of them).
struct CacheNames {
  const char *sc0, *nt, *sc1;
};
CacheNames cache_names(Family family);

}  // namespace ckemu
