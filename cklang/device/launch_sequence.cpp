// SPDX-License-Identifier: MIT
// The launches of a repeated call, made at once: Python needs a microsecond for each HIP call.
//
// Nothing here is linked: the functions of the HIP library and of CPython come as pointers. The
// structs are mirrored by launch_sequence.py.

#include <stdint.h>

extern "C" {

struct object;  ///< A Python object.

/// CPython's functions.
struct ck_python {
  object* (*item)(object* list, intptr_t);
  unsigned long long (*word)(object*);
  object* (*integer)(long);
  int (*is_true)(object*);
  object* (*error)();
  void* (*unlock)();
  void (*lock)(void*);
};

/// A 64-bit word of a kernel's arguments that holds an address.
struct ck_patch {
  uint64_t* word;
  uint64_t address;  ///< Index among the addresses of the call.
  uint64_t offset;   ///< Bytes to add.
};

/// The arguments of hipModuleLaunchKernel that stay.
struct ck_launch {
  void* function;
  uint32_t grid[3];
  uint32_t block[3];
  void** extra;
};

struct ck_sequence {
  int (*set_device)(int);
  int (*launch)(void*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void* stream,
                void** params, void** extra);
  int (*synchronize)(void* stream);
  void (*promise_to_wait)(int);  ///< Null on a real GPU.
  int32_t device;
  uint32_t patches;
  uint32_t launches;
  const ck_patch* patch;
  const ck_launch* kernel;
};

enum { SET_DEVICE = 1, LAUNCH = 2, SYNCHRONIZE = 3 };

static ck_python python;

void ck_learn(const ck_python* functions) { python = *functions; }

}  // extern "C"

/// Writes the addresses into the arguments; false with a Python error if there are too few.
static bool put(const ck_sequence& s, object* addresses) {
  for (uint32_t i = 0; i < s.patches; ++i) {
    const ck_patch& p = s.patch[i];
    object* address = python.item(addresses, static_cast<intptr_t>(p.address));
    if (!address) return false;
    *p.word = python.word(address) + p.offset;
  }
  return !python.error();
}

/// Returns 0, or which call failed times 2^16 plus its hipError_t.
static int launch_all(const ck_sequence& s, void* stream, bool waits) {
  if (const int status = s.set_device(s.device)) return SET_DEVICE << 16 | status;
  const bool promises = waits && s.promise_to_wait;
  if (promises) s.promise_to_wait(1);
  for (uint32_t i = 0; i < s.launches; ++i) {
    const ck_launch& k = s.kernel[i];
    const int status = s.launch(k.function, k.grid[0], k.grid[1], k.grid[2], k.block[0], k.block[1], k.block[2], 0,
                                stream, nullptr, k.extra);
    if (status) {
      if (promises) s.promise_to_wait(0);
      return LAUNCH << 16 | status;
    }
  }
  if (!waits) return 0;
  const int status = s.synchronize(stream);
  if (status && promises) s.promise_to_wait(0);
  return status ? SYNCHRONIZE << 16 | status : 0;
}

/// Python's ``run(sequence, addresses, stream, waits)``; other threads run meanwhile.
extern "C" object* ck_run_sequence(object*, object* const* arguments, intptr_t) {
  const auto* sequence = reinterpret_cast<const ck_sequence*>(python.word(arguments[0]));
  auto* stream = reinterpret_cast<void*>(python.word(arguments[2]));
  const bool waits = python.is_true(arguments[3]) == 1;
  if (python.error() || !put(*sequence, arguments[1])) return nullptr;
  void* thread = python.unlock();
  const int failure = launch_all(*sequence, stream, waits);
  python.lock(thread);
  return python.integer(failure);
}
