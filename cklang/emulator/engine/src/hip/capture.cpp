// SPDX-License-Identifier: MIT
#include "hip/capture.h"

#include <algorithm>

#include "core/immortal.h"
#include "hip/stream.h"

namespace ckemu {

namespace {

void set_place(Queue& queue, std::unique_ptr<CapturePlace>&& place) {
  queue.captured = static_cast<std::unique_ptr<CapturePlace>&&>(place);
  __atomic_store_n(&queue.capturing, queue.captured != nullptr, __ATOMIC_RELEASE);
}

constexpr int kMostRelaxedMode = 2;

/// All captures under way. One lock: captures are short and rare.
struct Captures {
  Mutex lock;
  std::vector<Queue*> queues;  // that are captured
};
Captures& captures() { return immortal<Captures>(); }

void release_queues(const Capture& capture) {
  std::erase_if(captures().queues, [&](Queue* queue) {
    if (queue->captured->capture.get() != &capture) return false;
    set_place(*queue, nullptr);
    return true;
  });
}

/// Every node that another one follows.
bool is_followed(const Graph& graph, const Node* node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& other) {
    return std::find(other->after.begin(), other->after.end(), node) != other->after.end();
  });
}

/// Whether all work of the capture's other streams has come back to the one that began it.
bool is_joined(const Graph& graph, const std::vector<Node*>& tail) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
    return is_followed(graph, node.get()) || std::find(tail.begin(), tail.end(), node.get()) != tail.end();
  });
}

}  // namespace

bool is_captured(const Queue& queue) { return __atomic_load_n(&queue.capturing, __ATOMIC_ACQUIRE); }

hipError_t capture_task(Queue& queue, NodeKind kind, Action&& action, const void* function) {
  const Guard guard(captures().lock);
  if (queue.captured == nullptr) return hipErrorStreamCaptureInvalidated;
  CapturePlace& place = *queue.captured;
  if (place.capture->invalid) return hipErrorStreamCaptureInvalidated;
  Node* node = add_node(*place.capture->graph, kind, static_cast<Action&&>(action), place.tail);
  node->function = function;
  place.tail = {node};
  return hipSuccess;
}

hipError_t refuse_capture(Queue& queue) {
  const Guard guard(captures().lock);
  if (queue.captured != nullptr) queue.captured->capture->invalid = true;
  return hipErrorStreamCaptureUnsupported;
}

hipError_t check_not_implied(const Queue& queue) {
  const Guard guard(captures().lock);
  if (captures().queues.empty() || null_queue(queue.device).get() != &queue) return hipSuccess;
  hipError_t error = hipSuccess;
  for (const Queue* other : captures().queues) {
    if (!other->blocking || &other->device != &queue.device) continue;
    other->captured->capture->invalid = true;
    error = hipErrorStreamCaptureImplicit;
  }
  return error;
}

void forget_capture(Queue& queue) {
  const Guard guard(captures().lock);
  if (queue.captured == nullptr) return;
  queue.captured->capture->invalid = true;
  std::erase(captures().queues, &queue);
  set_place(queue, nullptr);
}

CapturePlace place_of(const Queue& queue) {
  const Guard guard(captures().lock);
  return queue.captured != nullptr ? *queue.captured : CapturePlace{};
}

hipError_t join_capture(Queue& queue, const CapturePlace& place) {
  const Guard guard(captures().lock);
  if (place.capture->invalid || place.capture->graph == nullptr) return hipErrorStreamCaptureInvalidated;
  if (queue.captured == nullptr) {
    set_place(queue, std::make_unique<CapturePlace>(place));
    captures().queues.push_back(&queue);
    return hipSuccess;
  }
  if (queue.captured->capture.get() != place.capture.get()) return hipErrorStreamCaptureMerge;
  std::vector<Node*>& tail = queue.captured->tail;
  for (Node* node : place.tail) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return hipSuccess;
}

hipError_t begin_capture(void* stream, int mode) {
  const Ref<Queue> queue = queue_of(stream);
  if (mode < 0 || mode > kMostRelaxedMode) return hipErrorInvalidValue;
  if (!queue) return hipErrorInvalidHandle;
  if (null_queue(queue->device).get() == queue.get()) return hipErrorStreamCaptureUnsupported;
  const Guard guard(captures().lock);
  if (queue->captured != nullptr) return hipErrorIllegalState;
  auto place = std::make_unique<CapturePlace>();
  place->capture = Ref<Capture>::make();
  place->capture->graph = std::make_unique<Graph>();
  place->capture->origin = queue.get();
  place->capture->mode = mode;
  set_place(*queue, static_cast<std::unique_ptr<CapturePlace>&&>(place));
  captures().queues.push_back(queue.get());
  return hipSuccess;
}

hipError_t end_capture(void* stream, std::unique_ptr<Graph>& graph) {
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return hipErrorInvalidHandle;
  const Guard guard(captures().lock);
  if (queue->captured == nullptr) return hipErrorIllegalState;
  const CapturePlace place = *queue->captured;
  if (place.capture->origin != queue.get()) return hipErrorStreamCaptureUnmatched;
  release_queues(*place.capture);
  std::unique_ptr<Graph> whole = static_cast<std::unique_ptr<Graph>&&>(place.capture->graph);
  if (place.capture->invalid) return hipErrorStreamCaptureInvalidated;
  if (!is_joined(*whole, place.tail)) return hipErrorStreamCaptureUnjoined;
  graph = static_cast<std::unique_ptr<Graph>&&>(whole);
  return hipSuccess;
}

CaptureStatus capture_status(const Queue& queue) {
  const Guard guard(captures().lock);
  if (queue.captured == nullptr) return CaptureStatus::None;
  return queue.captured->capture->invalid ? CaptureStatus::Invalidated : CaptureStatus::Active;
}

}  // namespace ckemu
