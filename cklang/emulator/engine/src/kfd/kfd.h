// SPDX-License-Identifier: MIT
//
// The GPUs' kernel driver, as AMD's own runtime sees it: files, calls on them, memory, events and queues. It exists in
// the library that is preloaded below that runtime, and not in the HIP library.
#pragma once

#include "core/base.h"
#include "core/program.h"
#include "hip/device.h"

namespace ckemu::kfd {

/// Node 0 is the CPU; GPU `n` is node n + 1, has this number for calls, and this number of a render node.
constexpr u32 kFirstGpu = 1000, kFirstRender = 128;
/// The GPU behind a number for calls; -1 if there is none.
int gpu_of(u32 id);

/// A new descriptor of the device file, which all memory is mapped from; -1 if there can be none.
int open_device();
bool is_device_file(int fd);
/// What ioctl(2) does on a descriptor of the device file: 0, or a negative error.
int control(unsigned long request, void* arguments);
/// Whether calls are told on stderr (CKLANG_KFD_LOG).
bool logging();

/// Memory that the driver has given, or memory of the process that it was told of.
struct Buffer {
  u64 address = 0, size = 0, offset = 0;  // in the process, and in the device file
  u32 flags = 0;
  int gpu = 0;
};
/// The buffer that holds an address; false if none does.
bool find_buffer(u64 address, Buffer& found);

struct AllocateMemory;
struct FreeMemory;
struct MapMemory;
struct AvailableMemory;
int allocate_memory(AllocateMemory& call);
int free_memory(FreeMemory& call);
int map_memory(MapMemory& call);
int unmap_memory(MapMemory& call);
int available_memory(AvailableMemory& call);

/// Offset in the device file of the words that GPUs write when they signal events, for callers without a place of their
/// own.
constexpr u64 kEventPage = u64{1} << 30;
/// Offset of a GPU's page of doorbells in the device file; each slot has 8 bytes.
u64 doorbell_offset(int gpu, u32 slot);
/// The doorbell itself, in this process.
u64* doorbell(int gpu, u32 slot);

struct CreateEvent;
struct EventNumber;
struct WaitEvents;
int create_event(CreateEvent& call);
int destroy_event(EventNumber& call);
int set_event(EventNumber& call);
int reset_event(EventNumber& call);
int wait_events(WaitEvents& call);
/// Signals an event, as a GPU does by an interrupt.
void raise_event(u32 id);
/// Signals all who wait for faults of memory.
void raise_memory_fault(int gpu, u64 address);

struct CreateQueue;
struct QueueNumber;
int create_queue(CreateQueue& call);
int destroy_queue(QueueNumber& call);

/// The kernel whose descriptor is at an address; none, with a reason, if there is no code.
Ref<Program> program_at(Device& gpu, u64 descriptor, Message& problem);
/// Code may have changed: what is known of it is compared before it runs again.
void doubt_programs();

/// What GPUs count: 100 MHz.
u64 ticks();

}  // namespace ckemu::kfd
