// SPDX-License-Identifier: MIT
//
// What a debugger may ask of a launch under control. A request is a kind and its arguments, 8 bytes each, and for some
// kinds an array behind them; the answer is bytes that `cklang/emulator/debugger/wire.py` reads.
#pragma once

#include <vector>

#include "debug/debugger.h"

namespace ckemu {

enum class Request : u64 {
  Release,      // the launch goes on to its end
  Launch,       // what it is
  Breakpoints,  // replaced by those of the array
  Lines,        // the number of the source line of each dword of the code, as an array
  Run,          // a Goal; the answer is where it stops
  Where,        // where it has stopped
  Waves,        // those that have begun and whose workgroups have not ended
  Scalars,      // group, wave
  Rows,         // group, wave, first, count: vector registers
  Local,        // group, offset, size: LDS
  Scratch,      // group, wave, lane, offset, size
  Memory,       // address, size
  Allocations,
  Interrupt,  // of a launch that runs; without an answer
};

/// Answers one request; false if it is none.
bool answer_request(Debugger& debugger, const char* gpu, const u8* bytes, size_t size, std::vector<u8>& answer);

}  // namespace ckemu
