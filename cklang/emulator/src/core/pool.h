// SPDX-License-Identifier: MIT
//
// Threads that help a caller with work that any number of them can share.
#pragma once

#include "core/base.h"

namespace ckemu {

/// The number of threads that can run at a time.
u32 worker_count();

/// Runs `work(context)` on the calling thread and, as far as they are free, on up to `helpers` others;
/// returns when all of them have.
void run_shared(void (*work)(void*), void* context, u64 helpers);

/// Registers the handlers of `fork` that this part needs. Of those registered later the first runs earlier.
void prepare_to_share();

}  // namespace ckemu
