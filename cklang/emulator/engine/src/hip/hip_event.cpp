// SPDX-License-Identifier: MIT
//
// HIP: events.
#include <ctime>

#include "core/immortal.h"
#include "hip/capture.h"
#include "hip/device.h"
#include "hip/event.h"
#include "hip/handles.h"

namespace ckemu {

namespace {

constexpr u32 kDisableTiming = 2, kKnownFlags = 0x80000000 | 0x40000000 | 0x20000000 | 0x10000000 | 7;

/// What a hipEvent_t points to.
struct Event {
  u32 flags = 0;
  Device* device = nullptr;
  Mutex lock;             // of all below: the last recording
  Point point;            // none before the first
  Ref<u64> nanoseconds;   // written when the point is passed
  CapturePlace captured;  // if it was recorded in a capture
};
Handles<Event>& events() { return immortal<Handles<Event>>(); }

u64 now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<u64>(time.tv_sec) * 1000000000 + static_cast<u64>(time.tv_nsec);
}

hipError_t create_event(void** handle, u32 flags) {
  if (handle == nullptr || (flags & ~kKnownFlags) != 0) return hipErrorInvalidValue;
  auto event = std::make_unique<Event>();
  event->device = &current_device();
  event->flags = flags;
  *handle = events().add(static_cast<std::unique_ptr<Event>&&>(event));
  return hipSuccess;
}

/// Where an event's last recording is done; false if it was captured.
bool last_point(Event& event, Point& point) {
  const Guard guard(event.lock);
  point = event.point;
  return !event.captured.capture;
}

hipError_t query_event(void* handle) {
  Event* event = events().find(handle);
  Point point;
  if (event == nullptr) return hipErrorInvalidHandle;
  if (!last_point(*event, point)) return hipErrorCapturedEvent;
  if (point.queue && !reached(point)) return hipErrorNotReady;
  return event->device->report_failure();
}

hipError_t synchronize(void* handle) {
  Event* event = events().find(handle);
  Point point;
  if (event == nullptr) return hipErrorInvalidHandle;
  if (!last_point(*event, point)) return hipErrorCapturedEvent;
  if (point.queue) await(point);
  return event->device->report_failure();
}

hipError_t elapsed(float* milliseconds, void* start, void* stop) {
  if (milliseconds == nullptr) return hipErrorInvalidValue;
  u64 times[2];
  void* handles[2] = {start, stop};
  const Device* devices[2];
  for (int n = 0; n < 2; ++n) {
    Event* event = events().find(handles[n]);
    Point point;
    if (event == nullptr || (event->flags & kDisableTiming) != 0) return hipErrorInvalidHandle;
    if (!last_point(*event, point)) return hipErrorCapturedEvent;
    if (!point.queue) return hipErrorInvalidHandle;  // never recorded
    if (!reached(point)) return hipErrorNotReady;
    const Guard guard(event->lock);
    times[n] = *event->nanoseconds;
    devices[n] = event->device;
  }
  if (devices[0] != devices[1]) return hipErrorInvalidHandle;
  *milliseconds = static_cast<float>(static_cast<double>(static_cast<i64>(times[1] - times[0])) * 1e-6);
  return hipSuccess;
}

hipError_t wait_for_event(void* stream, void* handle) {
  const Ref<Queue> queue = queue_of(stream);
  Event* event = events().find(handle);
  if (!queue || event == nullptr) return hipErrorInvalidHandle;
  CapturePlace captured;
  Point point;
  {
    const Guard guard(event->lock);
    captured = event->captured;
    point = event->point;
  }
  if (captured.capture) return join_capture(*queue, captured);
  if (is_captured(*queue)) {
    refuse_capture(*queue);
    return hipErrorStreamCaptureIsolation;
  }
  if (point.queue) enqueue(queue, {{}, {point}, true});
  return hipSuccess;
}

}  // namespace

hipError_t record_event(void* handle, void* stream) {
  const Ref<Queue> queue = queue_of(stream);
  Event* event = events().find(handle);
  if (!queue || event == nullptr || event->device != &queue->device) return hipErrorInvalidHandle;
  const Guard guard(event->lock);
  event->captured = place_of(*queue);
  if (event->captured.capture) return hipSuccess;
  if (const hipError_t error = check_not_implied(*queue); error != hipSuccess) return error;
  const Ref<u64> time = Ref<u64>::make();
  event->nanoseconds = time;
  event->point = enqueue(queue, {[time] { *time = now(); }, {}, true});
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipEventCreateWithFlags(void** event, u32 flags) { return finish(create_event(event, flags)); }
CKEMU_EXPORT hipError_t hipEventCreate(void** event) { return finish(create_event(event, 0)); }
CKEMU_EXPORT hipError_t hipEventDestroy(void* event) {
  return finish(events().remove(event) != nullptr ? hipSuccess : hipErrorInvalidHandle);
}
CKEMU_EXPORT hipError_t hipEventRecord(void* event, void* stream) { return finish(record_event(event, stream)); }
CKEMU_EXPORT hipError_t hipEventRecordWithFlags(void* event, void* stream, u32 flags) {
  return finish(flags > 1 ? hipErrorInvalidValue : record_event(event, stream));
}
CKEMU_EXPORT hipError_t hipEventSynchronize(void* event) { return finish(synchronize(event)); }
CKEMU_EXPORT hipError_t hipEventQuery(void* event) { return finish(query_event(event)); }
CKEMU_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, void* start, void* stop) {
  return finish(elapsed(milliseconds, start, stop));
}
CKEMU_EXPORT hipError_t hipStreamWaitEvent(void* stream, void* event, u32 flags) {
  return finish(flags > 1 ? hipErrorInvalidValue : wait_for_event(stream, event));
}

}  // namespace ckemu
