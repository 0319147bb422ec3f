// SPDX-License-Identifier: MIT
//
// A loop of launches, each waited for: what benchmarks/emulator.py measures without Python.
#include <time.h>

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
using Wait = int (*)();

/// Seconds that one takes, of `count` workgroups with 64 work items; negative after an error.
extern "C" double launches(void* launch, void* wait, void* kernel, unsigned groups, void** arguments, int count) {
  timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int n = 0; n < count; ++n) {
    if (reinterpret_cast<Launch>(launch)(kernel, groups, 1, 1, 64, 1, 1, 0, nullptr, nullptr, arguments) != 0) return -1;
    if (reinterpret_cast<Wait>(wait)() != 0) return -1;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (static_cast<double>(end.tv_sec - start.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec)) / count;
}
