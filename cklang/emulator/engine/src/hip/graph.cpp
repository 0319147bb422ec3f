// SPDX-License-Identifier: MIT
#include "hip/graph.h"

#include <algorithm>
#include <map>

namespace ckemu {

Node* add_node(Graph& graph, NodeKind kind, Action&& action, const std::vector<Node*>& after) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->action = static_cast<Action&&>(action);
  node->after = after;
  node->graph = &graph;
  graph.nodes.push_back(static_cast<std::unique_ptr<Node>&&>(node));
  return graph.nodes.back().get();
}

bool order_of(const Graph& graph, std::vector<Node*>& order) {
  std::map<const Node*, size_t> missing;
  for (const auto& node : graph.nodes) missing[node.get()] = node->after.size();
  order.clear();
  while (order.size() < graph.nodes.size()) {
    const size_t before = order.size();
    for (const auto& node : graph.nodes) {
      const auto left = missing.find(node.get());
      if (left == missing.end() || left->second != 0) continue;
      missing.erase(left);
      order.push_back(node.get());
      for (const auto& other : graph.nodes) {
        const auto waits = std::count(other->after.begin(), other->after.end(), node.get());
        if (waits != 0 && missing.count(other.get()) != 0) missing[other.get()] -= static_cast<size_t>(waits);
      }
    }
    if (order.size() == before) return false;
  }
  return true;
}

std::unique_ptr<Graph> copy_of(const Graph& graph, std::vector<std::pair<const Node*, Node*>>& copies) {
  auto copy = std::make_unique<Graph>();
  std::map<const Node*, Node*> made;
  for (const auto& node : graph.nodes) {
    Node* twin = add_node(*copy, node->kind, Action(node->action), {});
    twin->function = node->function;
    if (node->child != nullptr) twin->child = copy_of(*node->child, copies);
    made[node.get()] = twin;
    copies.push_back({node.get(), twin});
  }
  for (const auto& node : graph.nodes) {
    for (const Node* before : node->after) made[node.get()]->after.push_back(made[before]);
  }
  return copy;
}

}  // namespace ckemu
