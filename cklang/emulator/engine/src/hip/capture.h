// SPDX-License-Identifier: MIT
//
// Capture: the work given to some streams becomes a graph instead of running.
#pragma once

#include "hip/graph.h"
#include "hip/queue.h"

namespace ckemu {

/// Where a stream or an event is in a capture: what comes next follows `tail`.
struct CapturePlace {
  Ref<Capture> capture;
  std::vector<Node*> tail;
};

/// hipStreamCaptureStatus.
enum class CaptureStatus : int { None = 0, Active = 1, Invalidated = 2 };
CaptureStatus capture_status(const Queue& queue);

/// Captures a stream from now on; `mode` is a hipStreamCaptureMode.
hipError_t begin_capture(void* stream, int mode);
/// Ends the capture that began with a stream; what it has become.
hipError_t end_capture(void* stream, std::unique_ptr<Graph>& graph);

bool is_captured(const Queue& queue);
/// Adds work of a captured queue to its graph.
hipError_t capture_task(Queue& queue, NodeKind kind, Action&& action, const void* function = nullptr);
/// The answer to a call that a captured queue cannot take; its capture is void from then on.
hipError_t refuse_capture(Queue& queue);
/// The answer to work that would make a captured stream wait: that of the null stream of its device.
hipError_t check_not_implied(const Queue& queue);
/// A destroyed stream takes no more part.
void forget_capture(Queue& queue);

CapturePlace place_of(const Queue& queue);
/// Makes `queue` follow `place` too, and part of its capture.
hipError_t join_capture(Queue& queue, const CapturePlace& place);

}  // namespace ckemu
