// SPDX-License-Identifier: MIT
//
// Events: places in the order of a stream's work, with the time at which they were passed.
#pragma once

#include "hip/stream.h"

namespace ckemu {

/// Records the event behind a handle on a stream.
hipError_t record_event(void* event, void* stream);

}  // namespace ckemu
