// SPDX-License-Identifier: MIT
//
// Streams: which queue a stream handle means, and what becomes of work that is given to it.
#pragma once

#include "hip/capture.h"
#include "hip/graph.h"
#include "hip/queue.h"

namespace ckemu {

/// Handles that stand for no stream object: the null stream, its other name, and each thread's own.
constexpr u64 kNullStream = 0, kLegacyStream = 1, kPerThreadStream = 2;

/// What a hipStream_t points to.
struct Stream {
  Ref<Queue> queue;
  u64 number = 0;  // in the order in which the program has created them
};

/// The queue behind a stream handle; none if there is no such stream. The special handles mean
/// queues of the current device.
Ref<Queue> queue_of(void* stream);

/// A piece of work for a stream.
struct Task {
  NodeKind kind;
  Action action;
  bool always = false;             // even if the device has failed
  bool host = false;               // the host's work, which kernels may wait for
  const void* function = nullptr;  // of a launch: the kernel
};

/// Gives `task` to a stream: it is enqueued, or becomes a node of the graph that captures the stream.
hipError_t submit(void* stream, Task&& task);
hipError_t submit(const Ref<Queue>& queue, Task&& task);

/// Gives `task` to a stream and waits for it; how the device is then. Not while the stream is captured.
hipError_t submit_and_wait(const Ref<Queue>& queue, Task&& task);

/// Waits for all that a stream has; how its device is then.
hipError_t wait_for_stream(void* stream);

/// Creates a stream of the current device. `flags`: 1 for one that ignores the null stream.
hipError_t create_stream(void** stream, u32 flags, int priority);
hipError_t destroy_stream(void* stream);
/// Tells on stderr which streams the program has not destroyed.
void report_streams();

}  // namespace ckemu
