// SPDX-License-Identifier: MIT
//
// HIP: events.
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/immortal.h"
#include "hip/capture.h"
#include "hip/device.h"
#include "hip/event.h"
#include "hip/handles.h"
#include "hip/ipc.h"
#include "hip/module.h"

namespace ckemu {

namespace {

constexpr u32 kDisableTiming = 2, kInterprocess = 4,
              kKnownFlags = 0x80000000 | 0x40000000 | 0x20000000 | 0x10000000 | 7;

/// What processes have in common of an event: how often it was recorded, and up to which of these its streams are.
struct Recordings {
  u64 recorded, passed;
};
/// These on a page that other processes map.
class SharedEvent {
 public:
  explicit SharedEvent(int file) : file_(file), page_(static_cast<Recordings*>(map_shared(file, sizeof(Recordings)))) {}
  SharedEvent(SharedEvent&& other)
      : file_(std::exchange(other.file_, -1)), page_(std::exchange(other.page_, nullptr)) {}
  ~SharedEvent() {
    if (page_ != nullptr) munmap(page_, sizeof(Recordings));
    if (file_ >= 0) close(file_);
  }
  bool mapped() const { return page_ != nullptr; }
  int file() const { return file_; }
  u64 record() { return __atomic_add_fetch(&page_->recorded, 1, __ATOMIC_ACQ_REL); }
  void pass(u64 number) {
    u64 passed = __atomic_load_n(&page_->passed, __ATOMIC_RELAXED);
    while (passed < number &&
           !__atomic_compare_exchange_n(&page_->passed, &passed, number, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
  }
  u64 recorded() const { return __atomic_load_n(&page_->recorded, __ATOMIC_ACQUIRE); }
  bool passed(u64 number) const { return __atomic_load_n(&page_->passed, __ATOMIC_ACQUIRE) >= number; }

 private:
  int file_;
  Recordings* page_;  // null if it could not be mapped
};

/// What a hipEvent_t points to.
struct Event {
  u32 flags = 0;
  Device* device = nullptr;
  Mutex lock;               // of all below: the last recording
  Point point;              // none before the first
  Ref<u64> nanoseconds;     // written when the point is passed
  CapturePlace captured;    // if it was recorded in a capture
  Ref<SharedEvent> shared;  // with other processes, if it may be
};
Handles<Event>& events() { return immortal<Handles<Event>>(); }

hipError_t add_event(void** handle, u32 flags, const Ref<SharedEvent>& shared) {
  auto event = std::make_unique<Event>();
  event->device = &current_device();
  event->flags = flags;
  event->shared = shared;
  *handle = events().add(static_cast<std::unique_ptr<Event>&&>(event));
  return hipSuccess;
}

hipError_t create_event(void** handle, u32 flags) {
  if (handle == nullptr || (flags & ~kKnownFlags) != 0) return hipErrorInvalidValue;
  if ((flags & kInterprocess) != 0 && (flags & kDisableTiming) == 0) return hipErrorInvalidValue;
  Ref<SharedEvent> shared;
  if ((flags & kInterprocess) != 0) {
    shared = Ref<SharedEvent>::make(create_file("cklang-event", sizeof(Recordings)));
    if (!shared->mapped()) return hipErrorOutOfMemory;
  }
  return add_event(handle, flags, shared);
}

hipError_t get_event_handle(IpcHandle* handle, void* pointer) {
  Event* event = events().find(pointer);
  if (handle == nullptr) return hipErrorInvalidValue;
  if (event == nullptr || !event->shared) return hipErrorInvalidHandle;
  *handle = handle_of(kEventHandle, event->shared->file(), *event->device, sizeof(Recordings), 0);
  return hipSuccess;
}

hipError_t open_event(void** event, const IpcHandle& handle) {
  if (event == nullptr) return hipErrorInvalidValue;
  int file = -1;
  const hipError_t error = open_handle("hipIpcOpenEventHandle", kEventHandle, handle, file);
  if (error != hipSuccess) return error;
  Ref<SharedEvent> shared = Ref<SharedEvent>::make(file);
  return shared->mapped() ? add_event(event, kInterprocess | kDisableTiming, shared) : hipErrorMapFailed;
}

/// Waits until streams of whichever process have passed a recording; false, and the reason, if they will not.
bool await_recording(const SharedEvent& event, u64 number, Message& why) {
  PeerWatch peers;
  while (!event.passed(number)) {
    if (have_peers() && !peers.may_help(why)) return false;
    pause_for_peers();
  }
  return true;
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
  if (event->shared && !event->shared->passed(event->shared->recorded())) return hipErrorNotReady;
  return event->device->report_failure();
}

hipError_t synchronize(void* handle) {
  Event* event = events().find(handle);
  Point point;
  if (event == nullptr) return hipErrorInvalidHandle;
  if (!last_point(*event, point)) return hipErrorCapturedEvent;
  if (point.queue) await(point);
  if (event->shared) {
    last_message().clear();
    if (!await_recording(*event->shared, event->shared->recorded(), last_message())) return hipErrorLaunchTimeOut;
  }
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
  if (!event->shared) return hipSuccess;
  Device& gpu = queue->device;
  const Ref<SharedEvent> shared = event->shared;
  return submit(queue, {NodeKind::WaitEvent,
                        [shared, number = shared->recorded(), &gpu] {
                          Message why;
                          if (await_recording(*shared, number, why)) return;
                          Message text;
                          text.add("a stream waits for an event\n  %s", why.c_str());
                          gpu.fail(hipErrorLaunchTimeOut, text);
                        },
                        false, true});
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
  const Ref<SharedEvent> shared = event->shared;
  const u64 number = shared ? shared->record() : 0;
  event->point = enqueue(queue, {[time, shared, number] {
                                   *time = nanoseconds();
                                   if (shared) shared->pass(number);
                                 },
                                 {},
                                 true});
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipEventCreateWithFlags(void** event, u32 flags) { return finish(create_event(event, flags)); }
CKEMU_EXPORT hipError_t hipEventCreate(void** event) { return finish(create_event(event, 0)); }
CKEMU_EXPORT hipError_t hipEventDestroy(void* event) {
  return finish(events().remove(event) != nullptr ? hipSuccess : hipErrorInvalidHandle);
}
CKEMU_EXPORT hipError_t hipIpcGetEventHandle(IpcHandle* handle, void* event) {
  return finish(get_event_handle(handle, event));
}
CKEMU_EXPORT hipError_t hipIpcOpenEventHandle(void** event, IpcHandle handle) {
  return finish(open_event(event, handle));
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
