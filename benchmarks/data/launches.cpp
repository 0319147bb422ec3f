// SPDX-License-Identifier: MIT
//
// A loop of launches, each waited for: what benchmarks/emulator.py measures without Python.
#include <time.h>

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
using Wait = int (*)();

using SetDevice = int (*)(int);
using GetFunction = int (*)(void**, void*, const char*);

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

/// Seconds that one takes with the calls around it that Python makes too: choosing the device, finding the kernel.
extern "C" double launches_by_name(void* set_device, void* get_function, void* launch, void* wait, void* module, const char* name,
                                   void** arguments, int count) {
  const double start = now();
  for (int n = 0; n < count; ++n) {
    void* kernel = nullptr;
    if (reinterpret_cast<SetDevice>(set_device)(0) != 0) return -1;
    if (reinterpret_cast<GetFunction>(get_function)(&kernel, module, name) != 0) return -1;
    if (reinterpret_cast<Launch>(launch)(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, arguments) != 0) return -1;
    if (reinterpret_cast<Wait>(wait)() != 0) return -1;
  }
  return (now() - start) / count;
}

/// Seconds that one takes, of `count` workgroups with 64 work items; negative after an error.
extern "C" double launches(void* launch, void* wait, void* kernel, unsigned groups, void** arguments, int count) {
  const double start = now();
  for (int n = 0; n < count; ++n) {
    if (reinterpret_cast<Launch>(launch)(kernel, groups, 1, 1, 64, 1, 1, 0, nullptr, nullptr, arguments) != 0) return -1;
    if (reinterpret_cast<Wait>(wait)() != 0) return -1;
  }
  return (now() - start) / count;
}
