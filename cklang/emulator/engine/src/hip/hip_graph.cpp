// SPDX-License-Identifier: MIT
//
// HIP: graphs: capturing them, building them by hand, making them ready, and running them.
#include <algorithm>

#include "core/immortal.h"
#include "hip/capture.h"
#include "hip/copy_3d.h"
#include "hip/device.h"
#include "hip/handles.h"
#include "hip/kernel_node.h"
#include "hip/transfer.h"

namespace ckemu {

namespace {

/// What a hipGraphExec_t points to: the nodes in the order in which they run.
struct ExecutableGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> order;
  std::vector<std::pair<const Node*, Node*>> copies;  // nodes it was made from, and its own
};
struct Executable {
  Ref<ExecutableGraph> ready;
  Point last;  // where its last launch is done
};

Handles<Graph>& graphs() { return immortal<Handles<Graph>>(); }
Handles<Executable>& executables() { return immortal<Handles<Executable>>(); }

Graph* own(std::unique_ptr<Graph>&& graph) { return graphs().add(static_cast<std::unique_ptr<Graph>&&>(graph)); }

hipError_t create_graph(void** handle, u32 flags) {
  if (handle == nullptr || flags != 0) return hipErrorInvalidValue;
  *handle = own(std::make_unique<Graph>());
  return hipSuccess;
}

hipError_t end(void* stream, void** handle) {
  std::unique_ptr<Graph> graph;
  if (handle == nullptr) return hipErrorInvalidValue;
  *handle = nullptr;
  const hipError_t error = end_capture(stream, graph);
  if (error == hipSuccess) *handle = own(static_cast<std::unique_ptr<Graph>&&>(graph));
  return error;
}

/// The node of `graph` behind a handle; null if it has none such.
Node* node_in(const Graph& graph, const void* handle) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) { return node.get() == handle; });
  return found != graph.nodes.end() ? found->get() : nullptr;
}

/// What every hipGraphAdd…Node does with its first arguments.
hipError_t add(void** handle, void* graph_handle, void* const* after, size_t count, NodeKind kind, Action&& action,
               const void* function = nullptr) {
  Graph* graph = graphs().find(graph_handle);
  if (handle == nullptr || graph == nullptr || (after == nullptr && count != 0)) return hipErrorInvalidValue;
  std::vector<Node*> before;
  for (size_t n = 0; n < count; ++n) {
    before.push_back(node_in(*graph, after[n]));
    if (before.back() == nullptr) return hipErrorInvalidValue;
  }
  Node* node = add_node(*graph, kind, static_cast<Action&&>(action), before);
  node->function = function;
  *handle = node;
  return hipSuccess;
}

hipError_t kernel_action(const KernelNode* parameters, Action& action) {
  if (parameters == nullptr) return hipErrorInvalidValue;
  hipError_t error = hipSuccess;
  const Ref<PreparedLaunch> ready = prepare_node(*parameters, error);
  if (error == hipSuccess) action = [ready] { run_prepared(*ready); };
  return error;
}

hipError_t copy_action(void* to, const void* from, size_t size, int kind, Action& action) {
  if (!is_copy_kind(kind)) return hipErrorInvalidMemcpyDirection;
  const Block target{static_cast<u8*>(to)}, source{const_cast<u8*>(static_cast<const u8*>(from))};
  for (const Block& block : {target, source}) {
    if (const hipError_t error = check_block(block, {size}); error != hipSuccess) return error;
  }
  action = transfer_action(target, source, {size}, current_device());
  return hipSuccess;
}

hipError_t copy_3d_action(const Copy3D* parameters, Action& action) {
  CopiedBlocks blocks;
  if (const hipError_t error = blocks_of(parameters, blocks); error != hipSuccess) return error;
  for (const Block& block : {blocks.to, blocks.from}) {
    if (const hipError_t error = check_block(block, blocks.extent); error != hipSuccess) return error;
  }
  action = transfer_action(blocks.to, blocks.from, blocks.extent, current_device());
  return hipSuccess;
}

/// hipMemsetParams: width in elements.
struct SetNode {
  void* to;
  u32 element;
  size_t height, pitch;
  u32 value;
  size_t width;
};
hipError_t set_action(const SetNode* parameters, Action& action) {
  if (parameters == nullptr) return hipErrorInvalidValue;
  const SetNode& p = *parameters;
  if ((p.element != 1 && p.element != 2 && p.element != 4) || p.width == 0 || p.height == 0)
    return hipErrorInvalidValue;
  const Block target{static_cast<u8*>(p.to), p.pitch};
  const Extent extent{p.width * p.element, p.height};
  if (const hipError_t error = check_block(target, extent); error != hipSuccess) return error;
  action = fill_action(target, p.value, p.element, extent, current_device());
  return hipSuccess;
}

struct HostNode {
  void (*function)(void*);
  void* data;
};
hipError_t host_action(const HostNode* parameters, Action& action) {
  if (parameters == nullptr || parameters->function == nullptr) return hipErrorInvalidValue;
  action = [node = *parameters] {
    const HostWork mark;
    node.function(node.data);
  };
  return hipSuccess;
}

hipError_t add_child(void** handle, void* graph, void* const* after, size_t count, void* child_handle) {
  const Graph* child = graphs().find(child_handle);
  if (child == nullptr) return hipErrorInvalidValue;
  if (const hipError_t error = add(handle, graph, after, count, NodeKind::Graph, {}); error != hipSuccess) return error;
  std::vector<std::pair<const Node*, Node*>> copies;
  static_cast<Node*>(*handle)->child = copy_of(*child, copies);
  return hipSuccess;
}

hipError_t connect(void* handle, void* const* from, void* const* to, size_t count, bool present) {
  const Graph* graph = graphs().find(handle);
  if (graph == nullptr || ((from == nullptr || to == nullptr) && count != 0)) return hipErrorInvalidValue;
  for (size_t n = 0; n < count; ++n) {
    Node *before = node_in(*graph, from[n]), *after = node_in(*graph, to[n]);
    if (before == nullptr || after == nullptr) return hipErrorInvalidValue;
    if (present) after->after.push_back(before);
    else if (std::erase(after->after, before) == 0) return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t instantiate(void** handle, void* graph_handle) {
  const Graph* graph = graphs().find(graph_handle);
  if (handle == nullptr || graph == nullptr) return hipErrorInvalidValue;
  auto executable = std::make_unique<Executable>();
  executable->ready = Ref<ExecutableGraph>::make();
  ExecutableGraph& ready = *executable->ready;
  ready.graph = copy_of(*graph, ready.copies);
  if (!order_of(*ready.graph, ready.order)) return hipErrorInvalidValue;  // nodes wait for each other
  *handle = executables().add(static_cast<std::unique_ptr<Executable>&&>(executable));
  return hipSuccess;
}

void run_nodes(const std::vector<Node*>& order, const Device& gpu) {
  for (const Node* node : order) {
    if (gpu.failure() != hipSuccess) return;
    if (node->action) node->action();
    if (node->child == nullptr) continue;
    std::vector<Node*> inner;
    if (order_of(*node->child, inner)) run_nodes(inner, gpu);
  }
}

hipError_t launch(void* handle, void* stream) {
  Executable* executable = executables().find(handle);
  const Ref<Queue> queue = queue_of(stream);
  if (executable == nullptr) return hipErrorInvalidValue;
  if (!queue) return hipErrorInvalidHandle;
  const Device& gpu = queue->device;
  const hipError_t error =
      submit(queue, {NodeKind::Graph, [ready = executable->ready, &gpu] { run_nodes(ready->order, gpu); }});
  if (!is_captured(*queue)) executable->last = point_of(queue);
  return error;
}

/// An executable graph that does not run, so that it can be changed; null if there is none.
ExecutableGraph* at_rest(void* handle) {
  const Executable* executable = executables().find(handle);
  if (executable == nullptr) return nullptr;
  if (executable->last.queue) await(executable->last);
  return executable->ready.get();
}

/// Gives a node of an executable graph new work.
hipError_t set_node(void* handle, const void* node, NodeKind kind, hipError_t checked, Action&& action) {
  const ExecutableGraph* ready = at_rest(handle);
  if (ready == nullptr) return hipErrorInvalidValue;
  for (const auto& [original, copy] : ready->copies) {
    if (original != node) continue;
    if (copy->kind != kind) return hipErrorInvalidValue;
    if (checked == hipSuccess) copy->action = static_cast<Action&&>(action);
    return checked;
  }
  return hipErrorInvalidValue;
}

/// Gives a node of a graph new work; executable graphs made from it before keep theirs.
hipError_t set_node(void* handle, NodeKind kind, hipError_t checked, Action&& action, const void* function = nullptr) {
  const bool known = graphs().any([&](const Graph* graph) { return node_in(*graph, handle) != nullptr; });
  Node* node = static_cast<Node*>(handle);
  if (!known || node->kind != kind) return hipErrorInvalidValue;
  if (checked != hipSuccess) return checked;
  node->action = static_cast<Action&&>(action);
  node->function = function;
  return hipSuccess;
}

hipError_t set_child(void* handle, const void* node, void* child_handle) {
  const ExecutableGraph* ready = at_rest(handle);
  const Graph* child = graphs().find(child_handle);
  if (ready == nullptr || child == nullptr) return hipErrorInvalidValue;
  for (const auto& [original, copy] : ready->copies) {
    if (original != node) continue;
    if (copy->child == nullptr || copy->child->nodes.size() != child->nodes.size()) return hipErrorInvalidValue;
    std::vector<std::pair<const Node*, Node*>> copies;
    copy->child = copy_of(*child, copies);
    return hipSuccess;
  }
  return hipErrorInvalidValue;
}

/// hipGraphExecUpdateResult.
enum UpdateResult : int { kUpdated = 0, kTopologyChanged = 2, kKindChanged = 3, kFunctionChanged = 4 };

UpdateResult update(ExecutableGraph& ready, const Graph& graph, const Node** differing) {
  if (ready.graph->nodes.size() != graph.nodes.size()) return kTopologyChanged;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &now = *ready.graph->nodes[n], &wanted = *graph.nodes[n];
    *differing = &wanted;
    if (now.kind != wanted.kind) return kKindChanged;
    if (now.after.size() != wanted.after.size() || (now.child == nullptr) != (wanted.child == nullptr))
      return kTopologyChanged;
    if (now.function != wanted.function) return kFunctionChanged;
  }
  *differing = nullptr;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    ready.graph->nodes[n]->action = graph.nodes[n]->action;
    if (graph.nodes[n]->child != nullptr) ready.graph->nodes[n]->child = copy_of(*graph.nodes[n]->child, ready.copies);
  }
  return kUpdated;
}

hipError_t update(void* handle, void* graph_handle, void** differing, int* result) {
  ExecutableGraph* ready = at_rest(handle);
  const Graph* graph = graphs().find(graph_handle);
  if (ready == nullptr || graph == nullptr) return hipErrorInvalidValue;
  const Node* node = nullptr;
  const UpdateResult outcome = update(*ready, *graph, &node);
  if (differing != nullptr) *differing = const_cast<Node*>(node);
  if (result != nullptr) *result = outcome;
  return outcome == kUpdated ? hipSuccess : hipErrorGraphExecUpdateFailure;
}

/// Writes handles to `list`, at most `*count` of them; `*count` becomes how many there are.
hipError_t list_nodes(void** list, size_t* count, const std::vector<Node*>& nodes) {
  if (count == nullptr) return hipErrorInvalidValue;
  for (size_t n = 0; list != nullptr && n < std::min(*count, nodes.size()); ++n) list[n] = nodes[n];
  *count = nodes.size();
  return hipSuccess;
}

hipError_t nodes_of(void* handle, void** list, size_t* count, bool roots) {
  const Graph* graph = graphs().find(handle);
  if (graph == nullptr) return hipErrorInvalidValue;
  std::vector<Node*> nodes;
  for (const auto& node : graph->nodes) {
    if (!roots || node->after.empty()) nodes.push_back(node.get());
  }
  return list_nodes(list, count, nodes);
}

}  // namespace

CKEMU_EXPORT hipError_t hipStreamBeginCapture(void* stream, int mode) { return finish(begin_capture(stream, mode)); }
CKEMU_EXPORT hipError_t hipStreamEndCapture(void* stream, void** graph) { return finish(end(stream, graph)); }
CKEMU_EXPORT hipError_t hipStreamIsCapturing(void* stream, CaptureStatus* status) {
  const Ref<Queue> queue = queue_of(stream);
  if (status == nullptr) return finish(hipErrorInvalidValue);
  if (!queue) return finish(hipErrorInvalidHandle);
  *status = capture_status(*queue);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  if (mode == nullptr || *mode < 0 || *mode > 2) return finish(hipErrorInvalidValue);
  std::swap(*mode, current);
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipGraphCreate(void** graph, u32 flags) { return finish(create_graph(graph, flags)); }
CKEMU_EXPORT hipError_t hipGraphDestroy(void* graph) {
  return finish(graphs().remove(graph) != nullptr ? hipSuccess : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipGraphClone(void** clone, void* original) {
  const Graph* graph = graphs().find(original);
  if (clone == nullptr || graph == nullptr) return finish(hipErrorInvalidValue);
  std::vector<std::pair<const Node*, Node*>> copies;
  *clone = own(copy_of(*graph, copies));
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipGraphAddEmptyNode(void** node, void* graph, void* const* after, size_t count) {
  return finish(add(node, graph, after, count, NodeKind::Empty, {}));
}
CKEMU_EXPORT hipError_t hipGraphAddKernelNode(void** node, void* graph, void* const* after, size_t count,
                                              const KernelNode* parameters) {
  Action action;
  const hipError_t error = kernel_action(parameters, action);
  if (error != hipSuccess) return finish(error);
  return finish(add(node, graph, after, count, NodeKind::Kernel, static_cast<Action&&>(action), parameters->function));
}
CKEMU_EXPORT hipError_t hipGraphAddMemcpyNode1D(void** node, void* graph, void* const* after, size_t count, void* to,
                                                const void* from, size_t size, int kind) {
  Action action;
  const hipError_t error = copy_action(to, from, size, kind, action);
  return finish(error != hipSuccess ? error
                                    : add(node, graph, after, count, NodeKind::Memcpy, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphAddMemsetNode(void** node, void* graph, void* const* after, size_t count,
                                              const SetNode* parameters) {
  Action action;
  const hipError_t error = set_action(parameters, action);
  return finish(error != hipSuccess ? error
                                    : add(node, graph, after, count, NodeKind::Memset, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphAddHostNode(void** node, void* graph, void* const* after, size_t count,
                                            const HostNode* parameters) {
  Action action;
  const hipError_t error = host_action(parameters, action);
  return finish(error != hipSuccess ? error
                                    : add(node, graph, after, count, NodeKind::Host, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphAddChildGraphNode(void** node, void* graph, void* const* after, size_t count,
                                                  void* child) {
  return finish(add_child(node, graph, after, count, child));
}
CKEMU_EXPORT hipError_t hipGraphAddDependencies(void* graph, void* const* from, void* const* to, size_t count) {
  return finish(connect(graph, from, to, count, true));
}
CKEMU_EXPORT hipError_t hipGraphRemoveDependencies(void* graph, void* const* from, void* const* to, size_t count) {
  return finish(connect(graph, from, to, count, false));
}
CKEMU_EXPORT hipError_t hipGraphGetNodes(void* graph, void** nodes, size_t* count) {
  return finish(nodes_of(graph, nodes, count, false));
}
CKEMU_EXPORT hipError_t hipGraphGetRootNodes(void* graph, void** nodes, size_t* count) {
  return finish(nodes_of(graph, nodes, count, true));
}
CKEMU_EXPORT hipError_t hipGraphNodeGetType(void* node, int* kind) {
  const bool known = graphs().any([&](const Graph* graph) { return node_in(*graph, node) != nullptr; });
  if (!known || kind == nullptr) return finish(hipErrorInvalidValue);
  *kind = static_cast<int>(static_cast<const Node*>(node)->kind);
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipGraphInstantiate(void** executable, void* graph, void**, char*, size_t) {
  return finish(instantiate(executable, graph));
}
CKEMU_EXPORT hipError_t hipGraphInstantiateWithFlags(void** executable, void* graph, u64) {
  return finish(instantiate(executable, graph));
}
CKEMU_EXPORT hipError_t hipGraphUpload(void* executable, void* stream) {
  if (executables().find(executable) == nullptr) return finish(hipErrorInvalidValue);
  return finish(queue_of(stream) ? hipSuccess : hipErrorInvalidHandle);
}
CKEMU_EXPORT hipError_t hipGraphLaunch(void* executable, void* stream) { return finish(launch(executable, stream)); }
CKEMU_EXPORT hipError_t hipGraphExecDestroy(void* executable) {
  return finish(executables().remove(executable) != nullptr ? hipSuccess : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipGraphExecUpdate(void* executable, void* graph, void** differing, int* result) {
  return finish(update(executable, graph, differing, result));
}
CKEMU_EXPORT hipError_t hipGraphExecKernelNodeSetParams(void* executable, void* node, const KernelNode* parameters) {
  Action action;
  const hipError_t error = kernel_action(parameters, action);
  return finish(set_node(executable, node, NodeKind::Kernel, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphExecMemcpyNodeSetParams1D(void* executable, void* node, void* to, const void* from,
                                                          size_t size, int kind) {
  Action action;
  const hipError_t error = copy_action(to, from, size, kind, action);
  return finish(set_node(executable, node, NodeKind::Memcpy, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphExecMemsetNodeSetParams(void* executable, void* node, const SetNode* parameters) {
  Action action;
  const hipError_t error = set_action(parameters, action);
  return finish(set_node(executable, node, NodeKind::Memset, error, static_cast<Action&&>(action)));
}

CKEMU_EXPORT hipError_t hipGraphExecMemcpyNodeSetParams(void* executable, void* node, const Copy3D* parameters) {
  Action action;
  const hipError_t error = copy_3d_action(parameters, action);
  return finish(set_node(executable, node, NodeKind::Memcpy, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphExecHostNodeSetParams(void* executable, void* node, const HostNode* parameters) {
  Action action;
  const hipError_t error = host_action(parameters, action);
  return finish(set_node(executable, node, NodeKind::Host, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphExecChildGraphNodeSetParams(void* executable, void* node, void* child) {
  return finish(set_child(executable, node, child));
}

CKEMU_EXPORT hipError_t hipGraphAddMemcpyNode(void** node, void* graph, void* const* after, size_t count,
                                              const Copy3D* parameters) {
  Action action;
  const hipError_t error = copy_3d_action(parameters, action);
  return finish(error != hipSuccess ? error
                                    : add(node, graph, after, count, NodeKind::Memcpy, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphKernelNodeSetParams(void* node, const KernelNode* parameters) {
  Action action;
  const hipError_t error = kernel_action(parameters, action);
  const void* function = parameters != nullptr ? parameters->function : nullptr;
  return finish(set_node(node, NodeKind::Kernel, error, static_cast<Action&&>(action), function));
}
CKEMU_EXPORT hipError_t hipGraphMemcpyNodeSetParams(void* node, const Copy3D* parameters) {
  Action action;
  const hipError_t error = copy_3d_action(parameters, action);
  return finish(set_node(node, NodeKind::Memcpy, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphMemcpyNodeSetParams1D(void* node, void* to, const void* from, size_t size, int kind) {
  Action action;
  const hipError_t error = copy_action(to, from, size, kind, action);
  return finish(set_node(node, NodeKind::Memcpy, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphMemsetNodeSetParams(void* node, const SetNode* parameters) {
  Action action;
  const hipError_t error = set_action(parameters, action);
  return finish(set_node(node, NodeKind::Memset, error, static_cast<Action&&>(action)));
}
CKEMU_EXPORT hipError_t hipGraphHostNodeSetParams(void* node, const HostNode* parameters) {
  Action action;
  const hipError_t error = host_action(parameters, action);
  return finish(set_node(node, NodeKind::Host, error, static_cast<Action&&>(action)));
}

}  // namespace ckemu
