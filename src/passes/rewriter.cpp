#include "passes/rewriter.h"

#include <algorithm>

namespace dais {
namespace {

bool is_dead(const Graph& graph, const Node& node) {
  return std::all_of(node.outs.begin(), node.outs.end(), [&](const Value* value) {
    return value->users().empty() && !graph.is_output(value);
  });
}

bool apply_first(Graph& graph, Node& node, std::span<const Rule> rules, const Target* target) {
  for (const Rule& rule : rules) {
    Graph::InsertBefore place(graph, &node);
    const Values results =
        rule.apply ? rule.apply(graph, node) : rule.apply_for(graph, node, *target);
    if (results.empty()) continue;
    DAIS_CHECK(results.size() == node.outs.size());
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i]) graph.replace_uses(node.outs[i], results[i]);
    return true;
  }
  return false;
}

}  // namespace

bool rewrite(Graph& graph, std::span<const Rule> rules, const Target* target) {
  // Each sweep may open matches for the next; the bound only guards against rules that undo each
  // other, which would be a bug.
  constexpr int kMaxSweeps = 64;
  bool changed = false;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool again = false;
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes)
      if (!is_dead(graph, *node)) again |= apply_first(graph, *node, rules, target);
    if (!again) break;
    graph.remove_dead();
    changed = true;
  }
  return changed;
}

bool used_once(const Graph& graph, const Value* value) {
  return value->users().size() == 1 && !graph.is_output(value);
}

}  // namespace dais
