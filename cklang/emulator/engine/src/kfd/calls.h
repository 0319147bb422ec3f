// SPDX-License-Identifier: MIT
//
// What AMD's kernel driver is called with (Linux, uapi/linux/kfd_ioctl.h), and packets of queues (HSA).
#pragma once

#include "core/base.h"

namespace ckemu::kfd {

struct GetVersion {
  u32 major, minor;
};
struct CreateQueue {
  u64 ring, write_index, read_index, doorbell;
  u32 ring_bytes, gpu_id, type, percentage, priority, id;
  u64 eop, eop_bytes, save_area;
  u32 save_area_bytes, control_stack_bytes, sdma_engine, pad;
};
struct QueueNumber {
  u32 id, pad;
};
struct ClockCounters {
  u64 gpu, cpu, system, system_frequency;
  u32 gpu_id, pad;
};
struct Apertures {
  u64 lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
  u32 gpu_id, pad;
};
struct GetApertures {
  u64 apertures;
  u32 count, pad;
};
struct CreateEvent {
  u64 page;
  u32 trigger, type, auto_reset, node, id, slot;
};
struct EventNumber {
  u32 id, pad;
};
struct EventData {
  union {
    u64 age;  // of a signal
    struct {
      u32 not_present, read_only, no_execute, imprecise;
      u64 address;
      u32 gpu_id, kind;
    } fault;
  };
  u64 extension;
  u32 id, pad;
};
static_assert(sizeof(EventData) == 48);
struct WaitEvents {
  u64 events;  // EventData
  u32 count, all, milliseconds, result;
};
struct AllocateMemory {
  u64 address, size, handle, offset;
  u32 gpu_id, flags;
};
struct FreeMemory {
  u64 handle;
};
struct MapMemory {
  u64 handle, gpus;
  u32 count, done;
};
struct AvailableMemory {
  u64 bytes;
  u32 gpu_id, pad;
};
struct SharedMemory {
  struct Attribute {
    u32 type, value;
  };
  u64 address, size;
  u32 operation, count;
  Attribute attributes[1];  // or more
};
enum SharedMemoryWord : u32 {
  kSetAttributes = 0,
  kPrefetched = 1,  // the place; before it is the one that is preferred
  kAccess = 2,
  kAccessInPlace = 3,
  kSetFlags = 5,
  kHostAccess = 1,
  kCoherent = 2,
  kNoPlace = 0xffffffff,
};
struct XnackMode {
  i32 mode;
};

/// What a loader tells debuggers, as in <link.h>.
struct LoadedObject {
  u64 base;
  const char* name;  // a URI
  u64 dynamic;
  const LoadedObject *next, *previous;
};
struct Loader {
  i32 version, pad;
  const LoadedObject* objects;
};

enum MemoryFlag : u32 { kVram = 1 << 0, kGtt = 1 << 1, kUserMemory = 1 << 2, kDoorbells = 1 << 3 };
enum EventType : u32 { kSignalEvent = 0, kHardwareEvent = 3, kMemoryEvent = 8 };
enum QueueType : u32 { kAqlQueue = 2 };

/// At the beginning of a queue's save area: where its errors are written, and what is signalled then.
struct SaveArea {
  u32 places[6];
  u64 error;  // a signal's value
  u32 event, pad;
};
enum QueueError : u64 { kWaveTrap = 1 << 1, kIllegalInstruction = 1 << 3, kPacketUnsupported = 1 << 19 };

enum PacketType : u8 { kVendor = 0, kInvalid = 1, kDispatch = 2, kBarrierAnd = 3, kAgent = 4, kBarrierOr = 5 };
enum VendorFormat : u8 { kCommands = 1, kBarrierValue = 2 };
struct Barrier {
  u16 header, reserved[3];
  u64 signals[5], reserved2, completion;
};
struct ValueBarrier {
  u16 header;
  u8 format, reserved;
  u32 reserved2;
  u64 signal;
  i64 value, mask;
  u32 condition, reserved3;
  u64 reserved4[2], completion;
};
static_assert(sizeof(Barrier) == 64 && sizeof(ValueBarrier) == 64);

}  // namespace ckemu::kfd
