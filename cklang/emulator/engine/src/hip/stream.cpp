// SPDX-License-Identifier: MIT
#include "hip/stream.h"

#include <map>

#include "core/immortal.h"
#include "hip/capture.h"
#include "hip/device.h"
#include "hip/handles.h"

namespace ckemu {

namespace {

Handles<Stream>& streams() { return immortal<Handles<Stream>>(); }

/// The calling thread's own queues, by device.
struct OwnQueues {
  std::map<Device*, Ref<Queue>> queues;
  ~OwnQueues() {
    for (const auto& [gpu, queue] : queues) {
      forget_capture(*queue);
      close_queue(queue);
    }
  }
};
Ref<Queue> own_queue(Device& gpu) {
  thread_local OwnQueues own;
  Ref<Queue>& queue = own.queues[&gpu];
  if (!queue) queue = open_queue(gpu, true, 0, 0);
  return queue;
}

Action with_host_mark(Task&& task) {
  if (!task.host) return static_cast<Action&&>(task.action);
  return [action = static_cast<Action&&>(task.action)] {
    const HostWork mark;
    action();
  };
}

}  // namespace

Ref<Queue> queue_of(void* stream) {
  const u64 number = reinterpret_cast<u64>(stream);
  if (number == kNullStream || number == kLegacyStream) return null_queue(current_device());
  if (number == kPerThreadStream) return own_queue(current_device());
  const Stream* found = streams().find(stream);
  return found != nullptr ? found->queue : Ref<Queue>();
}

hipError_t submit(const Ref<Queue>& queue, Task&& task) {
  if (!queue) return hipErrorInvalidHandle;
  if (is_captured(*queue)) {
    const NodeKind kind = task.kind;
    const void* function = task.function;
    return capture_task(*queue, kind, with_host_mark(static_cast<Task&&>(task)), function);
  }
  if (const hipError_t error = check_not_implied(*queue); error != hipSuccess) return error;
  if (queue->device.failure() != hipSuccess && !task.always) return queue->device.report_failure();
  const bool always = task.always;
  enqueue(queue, {with_host_mark(static_cast<Task&&>(task)), {}, always});
  return hipSuccess;
}
hipError_t submit(void* stream, Task&& task) { return submit(queue_of(stream), static_cast<Task&&>(task)); }

hipError_t submit_and_wait(const Ref<Queue>& queue, Task&& task) {
  if (!queue) return hipErrorInvalidHandle;
  if (is_captured(*queue)) return refuse_capture(*queue);
  if (const hipError_t error = submit(queue, static_cast<Task&&>(task)); error != hipSuccess) return error;
  await(point_of(queue));
  return queue->device.report_failure();
}

hipError_t wait_for_stream(void* stream) {
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return hipErrorInvalidHandle;
  if (is_captured(*queue)) return refuse_capture(*queue);
  await(point_of(queue));
  return queue->device.report_failure();
}

hipError_t create_stream(void** stream, u32 flags, int priority) {
  if (stream == nullptr || flags > 1) return hipErrorInvalidValue;
  static u64 created = 0;
  auto fresh = std::make_unique<Stream>();
  fresh->number = __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED);
  fresh->queue = open_queue(current_device(), flags == 0, flags, priority);
  *stream = streams().add(static_cast<std::unique_ptr<Stream>&&>(fresh));
  return hipSuccess;
}

hipError_t destroy_stream(void* handle) {
  const std::unique_ptr<Stream> stream = streams().remove(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  forget_capture(*stream->queue);
  close_queue(stream->queue);
  return hipSuccess;
}

void report_streams() {
  u64 count = 0;
  streams().each([&](const Stream&) { ++count; });
  if (count == 0) return;
  std::fprintf(stderr, "streams that are not destroyed: %llu\n", static_cast<unsigned long long>(count));
  streams().each([](const Stream& stream) {
    std::fprintf(stderr, "  a stream of device %d, number %llu of those that the program has created\n",
                 device_number(stream.queue->device), static_cast<unsigned long long>(stream.number));
  });
}

}  // namespace ckemu
