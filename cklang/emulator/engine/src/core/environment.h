// SPDX-License-Identifier: MIT
//
// What the environment asks of the emulator, read once. A word that is not known ends the process: a
// check that is spelled wrong and silently left out would look like a program without mistakes.
#pragma once

#include <string>
#include <vector>

#include "core/base.h"

namespace ckemu {

/// What becomes of a process one of whose kernels has failed.
enum class AfterFault : u8 {
  Abort,   // the report goes to stderr and the process ends, as with ROCm
  Report,  // the report goes to stderr; later calls return the error
  Quiet,   // the host reads the report itself
};

struct Environment {
  u32 checks = 0;                        // CKLANG_SANITIZE: bits of Check
  u8 numerics = 0;                       // CKLANG_NUMERICS: a Numerics
  u64 timeout = 0;                       // CKLANG_TIMEOUT in milliseconds; 0: none
  u64 peer_timeout = 0;                  // CKLANG_PEER_TIMEOUT in milliseconds
  AfterFault fault = AfterFault::Abort;  // CKLANG_FAULT
  bool xnack = false;                    // HSA_XNACK: kernels may reach memory that only the host knows
  bool launches_wait = false;            // HIP_LAUNCH_BLOCKING: a launch returns when its kernel is done
  std::string reports;                   // CKLANG_REPORTS: where reports of checks are written
  std::string suppressions;              // CKLANG_SUPPRESSIONS: which of them are ignored
  std::vector<std::string> gpus;         // CKLANG_GPUS: empty if it does not say
  std::string profile;                   // CKLANG_PROFILE: a folder for what launches execute; empty: nothing
  u32 profiled = 0;                      // and how many workgroups of each launch
  std::string debugger;                  // CKLANG_DEBUGGER: the socket of a debugger; empty: none
  u64 resident = 0;                      // CKLANG_RESIDENT: workgroups under way at a time; 0: as the GPU has
  u64 schedule = 0;                      // CKLANG_SCHEDULE: the number of an order (core/schedule.h)
  u8 translate = 1;                      // CKLANG_TRANSLATE: a Translate
};

const Environment& environment();
/// Ends the process: `name` is set to `text`, which is not legal.
[[noreturn]] void refuse_setting(const char* name, const char* text, const char* problem);

/// The process is no HIP program but hosts the emulator: every device is visible, kernels may reach its
/// memory, and a fault does not end it.
void embed();
bool embedded();
/// The process has another HIP library, which chooses among all devices of the machine; kernels may reach all memory.
void serve_runtime();
bool serves_runtime();

AfterFault after_fault();
void set_after_fault(AfterFault choice);
/// Whether kernels may reach memory of the host that HIP does not know.
bool host_memory_reachable();

/// Milliseconds that a launch may take; 0: any number.
u64 timeout();
void set_timeout(u64 milliseconds);

/// Workgroups of a launch that may be under way at a time; 0: as many as the GPU holds.
u64 resident_limit();
void set_resident_limit(u64 workgroups);

}  // namespace ckemu
