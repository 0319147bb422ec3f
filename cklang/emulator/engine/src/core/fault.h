// SPDX-License-Identifier: MIT
//
// How a kernel stops wrongly: an instruction that cannot be executed, or an access to memory that
// is not there. A fault leaves the wave at once (siglongjmp) and ends the launch with a report.
#pragma once

#include <csetjmp>

#include "core/base.h"
#include "core/wave.h"

namespace ckemu {

enum class FaultKind : u8 { None, Instruction, Address, Deadlock, Abort };

/// What a worker thread found; `message` is the whole report.
struct Fault {
  FaultKind kind = FaultKind::None;
  u64 address = 0;         // that was accessed; 0 if the fault is of another kind
  const char* check = "";  // that has found it; "" if the execution itself has failed
  Message message;
};

/// Where faults of this thread land, and the wave that is running.
struct FaultFrame {
  sigjmp_buf landing;
  Wave* wave = nullptr;
  Fault fault;
  const char* check = "";  // that looks at the current instruction
};

/// Runs `body` outside of any kernel; false if it touched memory that is not there. `body` must not own
/// anything: it is left in the middle.
bool survives(void (*body)(void*), void* context);

/// The frame of the calling thread; null outside of kernel execution.
FaultFrame*& fault_frame();

/// Ends the running wave's launch with an error at the current instruction.
[[noreturn]] void raise(Wave& wave, FaultKind kind, const char* format, ...) __attribute__((format(printf, 3, 4)));

/// As `raise`, for an access to `address`.
[[noreturn]] void raise_access(Wave& wave, u64 address, const Message& what);

/// Describes where `wave` is: kernel, workgroup, wave, lane, pc, instruction, source line.
void describe_place(const Wave& wave, Message& out);

/// Describes an instruction: pc, text, source line.
void describe_code(const Program& program, const Code& code, Text<768>& out);

/// Installs the SIGSEGV and SIGBUS handlers, which chain to those found, unless they are in place.
void install_signal_handlers();

}  // namespace ckemu
