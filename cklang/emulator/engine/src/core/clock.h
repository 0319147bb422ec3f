// SPDX-License-Identifier: MIT
//
// Times of the host's clocks.
#pragma once

#include <ctime>

#include "core/base.h"

namespace ckemu {

inline u64 nanoseconds(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<u64>(time.tv_sec) * 1000000000 + static_cast<u64>(time.tv_nsec);
}
inline u64 milliseconds() { return nanoseconds() / 1000000; }

}  // namespace ckemu
