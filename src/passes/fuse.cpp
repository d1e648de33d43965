#include "passes/fuse.h"

#include <algorithm>
#include <unordered_set>

#include "ops/fused/fused.h"

namespace dais {
namespace {

struct Body {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Values inputs;    ///< of the surrounding graph
  Values produced;  ///< of the surrounding graph, one per body output
};

Body make_body(Graph& graph, const std::vector<Node*>& group) {
  Body body;
  const std::unordered_set<const Node*> inside(group.begin(), group.end());
  std::unordered_map<const Value*, Value*> map;
  auto get = [&](Value* value) -> Value* {
    if (!value) return nullptr;
    auto [place, added] = map.try_emplace(value, nullptr);
    if (!added) return place->second;
    if (value->constant()) {
      place->second = body.graph->add_constant(*value->constant(), value->name);
    } else {
      place->second = body.graph->add_input(value->type, value->name);
      body.inputs.push_back(value);
    }
    return place->second;
  };
  for (Node* node : group) {
    Values in;
    for (Value* value : node->in) in.push_back(get(value));
    Node& copy =
        body.graph->add_node(*node->op, node->attrs, std::move(in), node->outs.size(), node->name);
    for (size_t i = 0; i < node->outs.size(); ++i) map[node->outs[i]] = copy.outs[i];
  }
  for (Node* node : group)
    for (Value* value : node->outs) {
      const bool outside = std::any_of(value->users().begin(), value->users().end(),
                                       [&](const Use& use) { return !inside.contains(use.node); });
      if (!outside && !graph.is_output(value)) continue;
      body.graph->outputs.push_back(map.at(value));
      body.produced.push_back(value);
    }
  return body;
}

}  // namespace

Node* fuse_if_supported(Graph& graph, const std::vector<Node*>& group, const Target& target) {
  Body body = make_body(graph, group);
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(body.graph));
  Graph::InsertBefore place(graph, group.back());
  Node& fused = graph.add_node(Fused::op, Attrs::of(Fused{}), body.inputs, body.produced.size(),
                               group.back()->name, std::move(regions));
  if (!target.has_kernel(fused)) {
    graph.erase(fused);
    return nullptr;
  }
  for (size_t i = 0; i < body.produced.size(); ++i)
    graph.replace_uses(body.produced[i], fused.outs[i]);
  for (auto node = group.rbegin(); node != group.rend(); ++node) graph.erase(**node);
  return &fused;
}

}  // namespace dais
