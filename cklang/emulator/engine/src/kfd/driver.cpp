// SPDX-License-Identifier: MIT
//
// The calls of the driver, by number.
#include <cerrno>
#include <cstdlib>

#include "core/clock.h"
#include "core/fault.h"
#include "kfd/calls.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

constexpr u64 kGpuMemoryEnd = (u64{1} << 47) - 1;

int get_version(GetVersion& call) {
  call = {1, 17};
  return 0;
}
int clock_counters(ClockCounters& call) {
  call.gpu = ticks();
  call.cpu = nanoseconds(CLOCK_MONOTONIC_RAW);
  call.system = nanoseconds(CLOCK_BOOTTIME);
  call.system_frequency = 1000000000;
  return 0;
}
int get_apertures(GetApertures& call) {
  const u32 room = call.count, count = static_cast<u32>(device_count());
  call.count = count;
  Apertures* const out = reinterpret_cast<Apertures*>(call.apertures);
  for (u32 n = 0; n < std::min(room, count); ++n) {
    out[n] = {kSharedAperture,  kSharedAperture | 0xffffffff,
              kPrivateAperture, kPrivateAperture | 0xffffffff,
              0x4000,           kGpuMemoryEnd,
              kFirstGpu + n,    0};
  }
  return 0;
}
int xnack_mode(XnackMode& call) {
  if (call.mode < 0) call.mode = 0;
  return call.mode == 0 ? 0 : -EPERM;
}
/// All GPUs reach all memory of the process where it is. Nothing is moved, so no place is preferred.
int shared_memory(SharedMemory& call) {
  if (call.operation == kSetAttributes) return 0;
  for (u32 n = 0; n < call.count; ++n) {
    SharedMemory::Attribute& attribute = call.attributes[n];
    if (attribute.type <= kPrefetched) attribute.value = kNoPlace;
    else if (attribute.type == kAccess) attribute.type = kAccessInPlace;
    else if (attribute.type == kSetFlags) attribute.value = kHostAccess | kCoherent;
  }
  return 0;
}
/// What needs nothing here: policies of caches, places of scratch and trap handlers, masks, virtual memory.
int nothing(u64&) { return 0; }

struct Row {
  u8 number;
  const char* name;
  int (*run)(void*);
};
template <class Call, int (*Function)(Call&)>
int run(void* arguments) {
  return Function(*static_cast<Call*>(arguments));
}
constexpr Row kCalls[] = {
    {0x01, "get_version", run<GetVersion, get_version>},
    {0x02, "create_queue", run<CreateQueue, create_queue>},
    {0x03, "destroy_queue", run<QueueNumber, destroy_queue>},
    {0x04, "set_memory_policy", run<u64, nothing>},
    {0x05, "get_clock_counters", run<ClockCounters, clock_counters>},
    {0x07, "update_queue", run<u64, nothing>},
    {0x08, "create_event", run<CreateEvent, create_event>},
    {0x09, "destroy_event", run<EventNumber, destroy_event>},
    {0x0a, "set_event", run<EventNumber, set_event>},
    {0x0b, "reset_event", run<EventNumber, reset_event>},
    {0x0c, "wait_events", run<WaitEvents, wait_events>},
    {0x11, "set_scratch_backing_va", run<u64, nothing>},
    {0x12, "get_tile_config", run<u64, nothing>},
    {0x13, "set_trap_handler", run<u64, nothing>},
    {0x14, "get_process_apertures_new", run<GetApertures, get_apertures>},
    {0x15, "acquire_vm", run<u64, nothing>},
    {0x16, "alloc_memory_of_gpu", run<AllocateMemory, allocate_memory>},
    {0x17, "free_memory_of_gpu", run<FreeMemory, free_memory>},
    {0x18, "map_memory_to_gpu", run<MapMemory, map_memory>},
    {0x19, "unmap_memory_from_gpu", run<MapMemory, unmap_memory>},
    {0x1a, "set_cu_mask", run<u64, nothing>},
    {0x1e, "alloc_queue_gws", run<u64, nothing>},
    {0x20, "svm", run<SharedMemory, shared_memory>},
    {0x21, "set_xnack_mode", run<XnackMode, xnack_mode>},
    {0x23, "available_memory", run<AvailableMemory, available_memory>},
    {0x25, "runtime_enable", run<u64, nothing>},
};

}  // namespace

int gpu_of(u32 id) { return id - kFirstGpu < static_cast<u32>(device_count()) ? static_cast<int>(id - kFirstGpu) : -1; }

u64 ticks() { return nanoseconds() / 10; }

bool logging() {
  static const char* const text = std::getenv("CKLANG_KFD_LOG");
  return text != nullptr && *text == '1';
}

int control(unsigned long request, void* arguments) {
  const u8 number = request & 0xff;
  for (const Row& row : kCalls) {
    if (row.number != number) continue;
    const int result = row.run(arguments);
    if (logging()) std::fprintf(stderr, "kfd: %s: %d\n", row.name, result);
    return result;
  }
  if (logging()) std::fprintf(stderr, "kfd: call 0x%02x is not emulated\n", number);
  return -EINVAL;
}

}  // namespace ckemu::kfd
