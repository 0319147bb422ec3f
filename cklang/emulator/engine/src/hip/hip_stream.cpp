// SPDX-License-Identifier: MIT
//
// HIP: streams.
#include <sched.h>

#include "core/fault.h"
#include "hip/capture.h"
#include "hip/device.h"
#include "hip/memory.h"
#include "hip/peers.h"
#include "hip/stream.h"
#include "hip/written.h"

namespace ckemu {

namespace {

constexpr int kLeastPriority = 1, kGreatestPriority = -1;

hipError_t query_stream(void* stream) {
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return hipErrorInvalidHandle;
  if (is_captured(*queue)) return refuse_capture(*queue);
  return reached(point_of(queue)) ? queue->device.report_failure() : hipErrorNotReady;
}

/// Answers a question about a stream.
template <class Value, class Ask>
hipError_t ask(void* stream, Value* value, Ask answer) {
  const Ref<Queue> queue = queue_of(stream);
  if (value == nullptr) return hipErrorInvalidValue;
  if (!queue) return hipErrorInvalidHandle;
  *value = answer(*queue);
  return hipSuccess;
}

enum WaitFlag : u32 { kAtLeast = 0, kEqual = 1, kAnd = 2, kNor = 3 };

template <class T>
bool holds(T now, T value, u32 flag) {
  switch (flag) {
    case kAtLeast: return now >= value;
    case kEqual: return now == value;
    case kAnd: return (now & value) != 0;
    default: return ~(now | value) != 0;
  }
}

/// Waiting for a word of memory, or writing one.
template <class T>
struct Word {
  T* place;
  T value, mask;
  u32 flag;
  Device* gpu;
};
void fail_wait(Device& gpu, const void* place, const Message& why) {
  Message text;
  text.add("a stream waits for the word at %p\n  %s", place, why.c_str());
  gpu.fail(hipErrorLaunchTimeOut, text);
}
template <class T>
void await_word(void* context) {
  const Word<T>& word = *static_cast<const Word<T>*>(context);
  PeerWatch peers;
  while (!holds<T>(__atomic_load_n(word.place, __ATOMIC_ACQUIRE) & word.mask, word.value, word.flag)) {
    if (word.gpu->failure() != hipSuccess) return;
    Message why;
    if (have_peers() && !peers.may_help(why)) return fail_wait(*word.gpu, word.place, why);
    sched_yield();
  }
}
template <class T>
void write_word(void* context) {
  const Word<T>& word = *static_cast<const Word<T>*>(context);
  __atomic_store_n(word.place, word.value, __ATOMIC_RELEASE);
  note_written(reinterpret_cast<u64>(word.place), sizeof(T));
}

/// Puts the work on a word into a stream; the device fails if there is no such memory by then.
template <class T>
hipError_t at_word(void* stream, Word<T> word, void (*body)(void*), NodeKind kind) {
  const bool aligned = reinterpret_cast<u64>(word.place) % sizeof(T) == 0;
  if (!aligned || word.flag > kNor || !accessible(word.place, sizeof(T))) return hipErrorInvalidValue;
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return hipErrorInvalidHandle;
  Device& gpu = queue->device;
  word.gpu = &gpu;
  return submit(queue, {kind, [=, &gpu] {
                          Word<T> work = word;
                          if (survives(body, &work)) return;
                          Message text;
                          text.add("a stream waits for or writes the word at %p, where no memory is",
                                   static_cast<void*>(work.place));
                          gpu.fail(hipErrorIllegalAddress, text);
                        }});
}

template <class T>
hipError_t wait_value(void* stream, void* pointer, T value, u32 flag, T mask) {
  return at_word<T>(stream, {static_cast<T*>(pointer), value, mask, flag, nullptr}, await_word<T>, NodeKind::WaitEvent);
}
template <class T>
hipError_t write_value(void* stream, void* pointer, T value) {
  return at_word<T>(stream, {static_cast<T*>(pointer), value, 0, 0, nullptr}, write_word<T>, NodeKind::Memset);
}

}  // namespace

CKEMU_EXPORT hipError_t hipStreamCreate(void** stream) { return finish(create_stream(stream, 0, 0)); }
CKEMU_EXPORT hipError_t hipStreamCreateWithFlags(void** stream, u32 flags) {
  return finish(create_stream(stream, flags, 0));
}
CKEMU_EXPORT hipError_t hipStreamCreateWithPriority(void** stream, u32 flags, int priority) {
  const int within = priority > kLeastPriority      ? kLeastPriority
                     : priority < kGreatestPriority ? kGreatestPriority
                                                    : priority;
  return finish(create_stream(stream, flags, within));
}
CKEMU_EXPORT hipError_t hipExtStreamCreateWithCUMask(void** stream, u32 words, const u32* mask) {
  if (words == 0 || mask == nullptr) return finish(hipErrorInvalidValue);
  return finish(create_stream(stream, 0, 0));  // which compute unit runs what is not modelled
}
CKEMU_EXPORT hipError_t hipStreamDestroy(void* stream) { return finish(destroy_stream(stream)); }
CKEMU_EXPORT hipError_t hipStreamSynchronize(void* stream) { return finish(wait_for_stream(stream)); }
CKEMU_EXPORT hipError_t hipStreamQuery(void* stream) { return finish(query_stream(stream)); }
CKEMU_EXPORT hipError_t hipStreamGetFlags(void* stream, u32* flags) {
  return finish(ask(stream, flags, [](const Queue& queue) { return queue.flags; }));
}
CKEMU_EXPORT hipError_t hipStreamGetPriority(void* stream, int* priority) {
  return finish(ask(stream, priority, [](const Queue& queue) { return queue.priority; }));
}
CKEMU_EXPORT hipError_t hipStreamGetDevice(void* stream, int* number) {
  return finish(ask(stream, number, [](const Queue& queue) { return device_number(queue.device); }));
}
CKEMU_EXPORT int hipGetStreamDeviceId(void* stream) {
  const Ref<Queue> queue = queue_of(stream);
  return queue ? device_number(queue->device) : -1;
}
CKEMU_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return hipSuccess;
}

/// All compute units: streams are not confined to some.
CKEMU_EXPORT hipError_t hipExtStreamGetCUMask(void* stream, u32 words, u32* mask) {
  const Ref<Queue> queue = queue_of(stream);
  if (mask == nullptr || words == 0) return finish(hipErrorInvalidValue);
  if (!queue) return finish(hipErrorInvalidHandle);
  const u32 units = queue->device.spec->compute_units;
  for (u32 n = 0; n < words; ++n) {
    const u32 left = units > 32 * n ? units - 32 * n : 0;
    mask[n] = left >= 32 ? ~0u : (1u << left) - 1;
  }
  return hipSuccess;
}

using StreamCallback = void (*)(void* stream, hipError_t status, void* data);
CKEMU_EXPORT hipError_t hipStreamAddCallback(void* stream, StreamCallback callback, void* data, u32 flags) {
  if (callback == nullptr || flags != 0) return finish(hipErrorInvalidValue);
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return finish(hipErrorInvalidHandle);
  const Device* gpu = &queue->device;
  const auto call = [=] { callback(stream, gpu->failure(), data); };
  return finish(submit(queue, {NodeKind::Host, call, true, true}));
}
CKEMU_EXPORT hipError_t hipLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  if (function == nullptr) return finish(hipErrorInvalidValue);
  return finish(submit(stream, {NodeKind::Host, [=] { function(data); }, false, true}));
}

CKEMU_EXPORT hipError_t hipStreamWaitValue32(void* stream, void* pointer, u32 value, u32 flags, u32 mask) {
  return finish(wait_value<u32>(stream, pointer, value, flags, mask));
}
CKEMU_EXPORT hipError_t hipStreamWaitValue64(void* stream, void* pointer, u64 value, u32 flags, u64 mask) {
  return finish(wait_value<u64>(stream, pointer, value, flags, mask));
}
CKEMU_EXPORT hipError_t hipStreamWriteValue32(void* stream, void* pointer, u32 value, u32) {
  return finish(write_value<u32>(stream, pointer, value));
}
CKEMU_EXPORT hipError_t hipStreamWriteValue64(void* stream, void* pointer, u64 value, u32) {
  return finish(write_value<u64>(stream, pointer, value));
}

}  // namespace ckemu
