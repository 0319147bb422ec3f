// SPDX-License-Identifier: MIT
//
// How a debugger comes to control launches: over the socket that CKLANG_DEBUGGER names, or from inside of the process.
// One launch is under control at a time; others wait for it.
#pragma once

#include <vector>

#include "core/launch.h"

namespace ckemu {

/// Whether a debugger wants the launches of this process.
bool debugging();
/// Runs a launch under control; false, and nothing has happened, if the debugger does not want it.
bool run_debugged(const Launch& launch, const char* gpu, LaunchResult& result);

/// From now on launches call `launched`, which asks by `debug_request`; null: no more.
void attach_debugger(void (*launched)(void* context), void* context);
/// Answers a request about the launch under control; false if it is none.
bool debug_request(const u8* bytes, size_t size, std::vector<u8>& answer);

}  // namespace ckemu
