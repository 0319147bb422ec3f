// SPDX-License-Identifier: MIT
//
// HIP: streams and events. Every operation is finished when its call returns, so streams are always
// in order and idle; a failed kernel is reported by whoever waits.
#include <ctime>

#include "device.h"
#include "handles.h"
#include "hip_types.h"
#include "immortal.h"

namespace ckemu {

namespace {

struct Stream {
  Device* device;
  u32 flags;
  int priority;
};
struct Event {
  Device* device = nullptr;
  u64 nanoseconds = 0;
  bool recorded = false;
  bool timed = true;
};

Handles<Stream>& streams() { return immortal<Handles<Stream>>(); }
Handles<Event>& events() { return immortal<Handles<Event>>(); }

constexpr u32 kDisableTiming = 2;

/// The null, legacy and per-thread streams are those of the current device.
Device* stream_device(void* handle) {
  if (reinterpret_cast<u64>(handle) <= 2) return &current_device();
  const Stream* stream = streams().find(handle);
  return stream != nullptr ? stream->device : nullptr;
}
hipError_t wait_for(void* stream) {
  const Device* gpu = stream_device(stream);
  return gpu != nullptr ? gpu->sticky : hipErrorInvalidHandle;
}

u64 now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<u64>(time.tv_sec) * 1000000000 + static_cast<u64>(time.tv_nsec);
}

hipError_t create_stream(void** stream, u32 flags, int priority) {
  if (stream == nullptr || flags > 1) return hipErrorInvalidValue;
  *stream = streams().add(std::make_unique<Stream>(Stream{&current_device(), flags, priority}));
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipStreamCreate(void** stream) { return finish(create_stream(stream, 0, 0)); }
CKEMU_EXPORT hipError_t hipStreamCreateWithFlags(void** stream, u32 flags) { return finish(create_stream(stream, flags, 0)); }
CKEMU_EXPORT hipError_t hipStreamCreateWithPriority(void** stream, u32 flags, int priority) { return finish(create_stream(stream, flags, priority)); }
CKEMU_EXPORT hipError_t hipStreamDestroy(void* stream) { return finish(streams().remove(stream) != nullptr ? hipSuccess : hipErrorInvalidHandle); }
CKEMU_EXPORT hipError_t hipStreamSynchronize(void* stream) { return finish(wait_for(stream)); }
CKEMU_EXPORT hipError_t hipStreamQuery(void* stream) { return finish(wait_for(stream)); }
CKEMU_EXPORT hipError_t hipStreamGetFlags(void* stream, u32* flags) {
  if (flags == nullptr) return finish(hipErrorInvalidValue);
  if (stream_device(stream) == nullptr) return finish(hipErrorInvalidHandle);
  const Stream* found = streams().find(stream);
  *flags = found != nullptr ? found->flags : 0;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipStreamGetPriority(void* stream, int* priority) {
  if (priority == nullptr) return finish(hipErrorInvalidValue);
  if (stream_device(stream) == nullptr) return finish(hipErrorInvalidHandle);
  const Stream* found = streams().find(stream);
  *priority = found != nullptr ? found->priority : 0;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = 0;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipStreamGetDevice(void* stream, int* number) {
  const Device* gpu = stream_device(stream);
  if (number == nullptr) return finish(hipErrorInvalidValue);
  if (gpu == nullptr) return finish(hipErrorInvalidHandle);
  for (int n = 0; n < device_count(); ++n) {
    if (device(n) == gpu) *number = n;
  }
  return hipSuccess;
}
/// All compute units: streams are not confined to some.
CKEMU_EXPORT hipError_t hipExtStreamGetCUMask(void* stream, u32 words, u32* mask) {
  const Device* gpu = stream_device(stream);
  if (mask == nullptr || words == 0) return finish(hipErrorInvalidValue);
  if (gpu == nullptr) return finish(hipErrorInvalidHandle);
  for (u32 n = 0; n < words; ++n) {
    const u32 left = gpu->spec->compute_units > 32 * n ? gpu->spec->compute_units - 32 * n : 0;
    mask[n] = left >= 32 ? ~0u : (1u << left) - 1;
  }
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipStreamWaitEvent(void* stream, void* event, u32) {
  const bool known = stream_device(stream) != nullptr && events().find(event) != nullptr;
  return finish(known ? hipSuccess : hipErrorInvalidHandle);
}

CKEMU_EXPORT hipError_t hipEventCreateWithFlags(void** event, u32 flags) {
  if (event == nullptr) return finish(hipErrorInvalidValue);
  Event fresh;
  fresh.device = &current_device();
  fresh.timed = (flags & kDisableTiming) == 0;
  *event = events().add(std::make_unique<Event>(fresh));
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipEventCreate(void** event) { return hipEventCreateWithFlags(event, 0); }
CKEMU_EXPORT hipError_t hipEventDestroy(void* event) { return finish(events().remove(event) != nullptr ? hipSuccess : hipErrorInvalidHandle); }
CKEMU_EXPORT hipError_t hipEventRecord(void* event, void* stream) {
  Event* found = events().find(event);
  if (found == nullptr || stream_device(stream) == nullptr) return finish(hipErrorInvalidHandle);
  found->nanoseconds = now();
  found->recorded = true;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipEventSynchronize(void* event) {
  const Event* found = events().find(event);
  return finish(found != nullptr ? found->device->sticky : hipErrorInvalidHandle);
}
CKEMU_EXPORT hipError_t hipEventQuery(void* event) { return hipEventSynchronize(event); }
CKEMU_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, void* start, void* stop) {
  const Event *first = events().find(start), *last = events().find(stop);
  if (milliseconds == nullptr) return finish(hipErrorInvalidValue);
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded || !first->timed || !last->timed) {
    return finish(hipErrorInvalidHandle);
  }
  const i64 elapsed = static_cast<i64>(last->nanoseconds - first->nanoseconds);
  *milliseconds = static_cast<float>(static_cast<double>(elapsed) * 1e-6);
  return hipSuccess;
}

}  // namespace ckemu
