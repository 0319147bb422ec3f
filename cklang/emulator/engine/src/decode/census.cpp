// SPDX-License-Identifier: MIT
//
// Which instructions a piece of code holds, and which of them the emulator can execute: for the
// table of coverage in the documentation.
#include "hip/ckemu.h"

#include "core/program.h"
#include "decode/decode.h"
#include "hip/hip_types.h"
#include "ops/matrix.h"
#include "ops/modifiers.h"

namespace ckemu {

namespace {

bool emulated(const Inst& inst) {
  const Handler found = inst.matrix != nullptr ? matrix_handler(inst) : handler_of(inst.op);
  return found != nullptr && plan_modifiers(inst).refusal == nullptr;
}

}  // namespace

CKEMU_EXPORT int ckemu_census(const char* arch, const void* code, size_t bytes, void (*emit)(void*, const char*, int),
                              void* context) {
  Family family;
  if (!family_of(arch, family)) return -1;
  const u8* at = static_cast<const u8*>(code);
  for (size_t left = bytes / 4; left != 0;) {
    u32 words[4] = {};
    const size_t readable = left < 4 ? left : 4;
    std::memcpy(words, at, 4 * readable);
    size_t used = 1;
    if (words[0] != 0) {  // zeros are padding
      Inst inst;
      DecodeError error;
      const bool known = decode(family, words, readable, inst, error);
      emit(context, known ? mnemonic(inst.op) : "", known && emulated(inst) ? 1 : 0);
      if (known && inst.op_y != Op::none) emit(context, mnemonic(inst.op_y), handler_of(inst.op_y) != nullptr);
      if (known) used = inst.bytes / 4;
    }
    at += 4 * used;
    left -= used < left ? used : left;
  }
  return 0;
}

}  // namespace ckemu
