#include <algorithm>

#include "passes/passes.h"

namespace dais {
namespace {

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.in == b.in && a.outs.size() == b.outs.size() && a.attrs == b.attrs;
}

size_t hash_of(const Node& node) {
  size_t hash = std::hash<const void*>{}(node.op) ^ node.attrs.hash();
  for (const Value* value : node.in) hash = hash * 1000003 ^ std::hash<const void*>{}(value);
  return hash;
}

/// Small equal constants become one, so that nodes which use them compare equal.
bool share_constants(Graph& graph) {
  constexpr size_t kMaxBytes = 4096;
  std::unordered_map<std::string, Value*> seen;
  std::vector<Value*> constants;
  for (const auto& value : graph.values())
    if (value->constant() && value->constant()->bytes() <= kMaxBytes &&
        value->constant()->dtype() != DType::string && !value->users().empty())
      constants.push_back(value.get());
  bool changed = false;
  for (Value* value : constants) {
    const Tensor& tensor = *value->constant();
    std::string key = tensor.describe();
    key.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    auto [place, added] = seen.try_emplace(std::move(key), value);
    if (added || graph.is_output(value)) continue;
    graph.replace_uses(value, place->second);
    changed = true;
  }
  return changed;
}

}  // namespace

bool share_common(Graph& graph, const Target&) {
  bool changed = share_constants(graph);
  std::unordered_multimap<size_t, Node*> seen;
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (Node* node : nodes) {
    if (!node->op->pure || !node->regions.empty()) continue;
    const size_t hash = hash_of(*node);
    const auto [begin, end] = seen.equal_range(hash);
    const auto twin =
        std::find_if(begin, end, [&](auto& entry) { return same(*entry.second, *node); });
    if (twin == end) {
      seen.emplace(hash, node);
      continue;
    }
    // Two outputs of the graph keep their two names.
    const bool both_outputs =
        std::any_of(node->outs.begin(), node->outs.end(),
                    [&](const Value* value) { return graph.is_output(value); });
    if (both_outputs) continue;
    for (size_t i = 0; i < node->outs.size(); ++i)
      graph.replace_uses(node->outs[i], twin->second->outs[i]);
    changed = true;
  }
  return graph.remove_dead() || changed;
}

}  // namespace dais
