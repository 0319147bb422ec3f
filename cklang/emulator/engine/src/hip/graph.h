// SPDX-License-Identifier: MIT
//
// Graphs: work that is described once and run as often as wanted.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/ref.h"
#include "hip/hip_types.h"

namespace ckemu {

using Action = std::function<void()>;

/// hipGraphNodeType.
enum class NodeKind : int {
  Kernel = 0,
  Memcpy = 1,
  Memset = 2,
  Host = 3,
  Graph = 4,
  Empty = 5,
  WaitEvent = 6,
  EventRecord = 7,
  MemAlloc = 10,
  MemFree = 11
};

struct Graph;

struct Node {
  NodeKind kind = NodeKind::Empty;
  Action action;
  std::vector<Node*> after;
  Graph* graph = nullptr;
  const void* function = nullptr;  // of a kernel node: what was launched
  std::unique_ptr<Graph> child;    // of a graph node
};

/// What a hipGraph_t points to.
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

/// A stream's work on its way into a graph.
struct Capture {
  std::unique_ptr<Graph> graph;
  const void* origin = nullptr;  // the queue that began it
  int mode = 0;
  bool invalid = false;
};

/// Adds a node after those of `after`.
Node* add_node(Graph& graph, NodeKind kind, Action&& action, const std::vector<Node*>& after);

/// The nodes in an order in which each comes after those it waits for; false if there is none.
bool order_of(const Graph& graph, std::vector<Node*>& order);

/// A copy with nodes of its own; `copies` tells which is the copy of which.
std::unique_ptr<Graph> copy_of(const Graph& graph, std::vector<std::pair<const Node*, Node*>>& copies);

}  // namespace ckemu
