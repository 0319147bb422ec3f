// SPDX-License-Identifier: MIT
//
// Device memory, which is host memory: every allocation is known by its address, so that sizes can be
// asked for and wrong pointers refused, and ends before a page that faults, so that overruns are seen.
#pragma once

#include "hip/device.h"

namespace ckemu {

/// hipMemoryType.
enum class MemoryType : int { Unregistered = 0, Host = 1, Device = 2, Managed = 3 };

struct Allocation {
  u64 base = 0;
  size_t size = 0;
  size_t mapped = 0;  // 0 for registered memory, which is not ours
  MemoryType type = MemoryType::Device;
  int device = 0;
  u32 flags = 0;
};

/// Gives memory of the current device. Nothing for `size` 0.
hipError_t allocate(void** pointer, size_t size, MemoryType type, u32 flags = 0);
/// Takes back what `allocate` gave, once nothing that was enqueued before can use it.
hipError_t release(void* pointer);

/// Makes memory of the caller known, or forgets it.
hipError_t register_host(void* pointer, size_t size, u32 flags);
hipError_t unregister_host(void* pointer);

/// The allocation that holds an address; false if none does.
bool find_allocation(const void* pointer, Allocation& found);

/// Whether `size` bytes at `pointer` may be copied from or to: not null, not freed, and not beyond the
/// allocation it starts in.
bool accessible(const void* pointer, size_t size);

/// Bytes that `gpu` has given.
u64 allocated_bytes(const Device& gpu);

}  // namespace ckemu
