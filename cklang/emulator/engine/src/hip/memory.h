// SPDX-License-Identifier: MIT
//
// Device memory, which is host memory: every allocation is known by its address, so that sizes can be
// asked for and wrong pointers refused, and ends before a page that faults, so that overruns are seen.
#pragma once

#include "hip/device.h"

namespace ckemu {

/// hipMemoryType, and what a texture or surface object points to.
enum class MemoryType : int { Unregistered = 0, Host = 1, Device = 2, Managed = 3, Array = 10, Object = 100 };

struct Allocation {
  u64 base = 0;
  size_t size = 0;
  size_t mapped = 0;  // 0 for memory that hipFree cannot free: registered, or of a hipMemMap
  MemoryType type = MemoryType::Device;
  int device = 0;
  u32 flags = 0;
  size_t zone = 0;   // bytes before and behind it that fault
  u64 number = 0;    // in the order in which the program has asked
  int file = -1;     // behind its pages, where other processes share them
  u32 openings = 0;  // of memory of another process: how often it was opened here

  /// Whether only copies, fills and kernels write it, so that bytes which none has written are known.
  bool followed() const { return type == MemoryType::Device || type == MemoryType::Array; }
};

/// Gives memory of the current device. Nothing for `size` 0.
hipError_t allocate(void** pointer, size_t size, MemoryType type, u32 flags = 0);
/// Takes back what `allocate` gave, once nothing that was enqueued before can use it.
hipError_t release(void* pointer);

/// Lets other processes map the allocation that holds `pointer`, at the address that it has; `shared` tells which file
/// they map. No kernel and no copy runs while its pages become the file's.
hipError_t share(const void* pointer, Allocation& shared);
/// Maps memory of another process, whose file becomes the allocation's, or finds it if it is mapped already.
hipError_t attach(void** pointer, int file, size_t size);
/// Undoes one `attach`, for a pointer into the memory.
hipError_t detach(void* pointer);

/// Makes memory of the caller known, or forgets it.
hipError_t register_host(void* pointer, size_t size, u32 flags);
hipError_t unregister_host(void* pointer);

/// Makes device memory known that is mapped at an address of the program's choice, or forgets it.
void know_mapped(u64 base, size_t size, int device);
void forget_mapped(u64 base);

/// The allocation that holds an address; false if none does.
bool find_allocation(const void* pointer, Allocation& found);

/// All allocations, in the order of their addresses.
std::vector<Allocation> all_allocations();

/// Whether `size` bytes at `pointer` may be copied from or to: not null, not freed, and not beyond the
/// allocation it starts in.
bool accessible(const void* pointer, size_t size);

/// What lies at an address.
enum class Ground : u8 {
  Inside,   // of one allocation, with all bytes
  Beyond,   // at least one byte is close behind or before an allocation, where nothing is
  Freed,    // memory that was freed a short time ago
  Unknown,  // the host's own memory, or none
};
/// Where `size` bytes at `address` lie; `begin` and `end` are those of the memory they are inside of.
Ground ground_at(u64 address, size_t size, u64& begin, u64& end);
/// Adds what is known of the place of `address`: freed memory, or the nearest allocation and how far it is.
void describe_address(u64 address, Message& out);

/// Makes memory known that kernels may access and HIP has not allocated: loaded code objects.
void know(u64 begin, u64 size);
void forget(u64 begin);

/// Whether an address is in memory that was freed a short time ago.
bool freed_before(const void* pointer);
/// Tells on stderr what the program has not freed.
void report_leaks();
/// The allocation that begins at `pointer`; false, and a report, if none does.
bool find_beginning(const void* pointer, Allocation& found);

/// Bytes that `gpu` has given.
u64 allocated_bytes(const Device& gpu);

}  // namespace ckemu
