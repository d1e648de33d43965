// The Gradient operator of ai.onnx.preview.training: gradients are appended to the graph while it
// is read.
#include <algorithm>

#include "autodiff/autodiff.h"
#include "onnx/import_scope.h"
#include "ops/gradient.h"

namespace dais::onnx {
namespace {

/// The nodes that lead from `named` to `y`, in order.
std::vector<Node*> between(const Graph& graph, Value* y, const Values& named) {
  std::unordered_set<const Value*> needed{y};
  const auto is_named = [&](const Value* value) {
    return std::find(named.begin(), named.end(), value) != named.end();
  };
  std::vector<Node*> out;
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    Node& node = **it;
    const bool leads = std::any_of(node.outs.begin(), node.outs.end(), [&](const Value* value) {
      return needed.contains(value) && !is_named(value);
    });
    if (!leads) continue;
    needed.insert(node.in.begin(), node.in.end());
    out.push_back(&node);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// A copy of what leads to y, with other values for the named ones.
Value* computed_anew(Graph& graph, Value* y, const Values& named, const Values& given) {
  std::unordered_map<const Value*, Value*> copies;
  for (size_t i = 0; i < named.size(); ++i) copies[named[i]] = given[i];
  const auto copy_of = [&](Value* value) {
    const auto found = copies.find(value);
    return found == copies.end() ? value : found->second;
  };
  for (const Node* node : between(graph, y, named)) {
    Values in;
    for (Value* value : node->in) in.push_back(copy_of(value));
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node->regions) regions.push_back(region->clone());
    const Node& copy =
        graph.add_node(*node->op, node->attrs, in, node->outs.size(), {}, std::move(regions));
    for (size_t i = 0; i < copy.outs.size(); ++i) copies.emplace(node->outs[i], copy.outs[i]);
  }
  return copy_of(y);
}

}  // namespace

bool is_gradient(const NodeProto& node) {
  return node.type == "Gradient" && plain_domain(node.domain) == "ai.onnx.preview.training";
}

Values expand_gradient(Graph& graph, Value* y, const Values& named, const Values& given,
                       size_t count) {
  // Always a copy: composites in it may be taken apart, while names of the file stand for values.
  y = computed_anew(graph, y, named, given);
  const Values wrt(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
  Values out = append_gradients(graph, y, wrt);
  for (size_t i = 0; i < count; ++i)
    if (!out[i]) out[i] = filled_like(graph, 0, wrt[i]);
  return out;
}

}  // namespace dais::onnx
