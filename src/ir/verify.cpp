#include <algorithm>
#include <unordered_set>

#include "ir/graph.h"

namespace dais {
namespace {

[[noreturn]] void broken(const Graph& graph, const std::string& what, const std::string& where) {
  throw Error(Code::internal, "graph '" + graph.name + "': " + what, where,
              "This is a bug in dais; --passes-until finds the pass that caused it");
}

void verify_node(const Graph& graph, const Node& node,
                 const std::unordered_set<const Value*>& defined) {
  for (size_t i = 0; i < node.in.size(); ++i) {
    const Value* value = node.in[i];
    if (!value) continue;
    if (!defined.contains(value))
      broken(graph, "'" + value->name + "' is used before it is made", node.where());
    const bool listed =
        std::any_of(value->users().begin(), value->users().end(),
                    [&](const Use& use) { return use.node == &node && use.index == i; });
    if (!listed) broken(graph, "'" + value->name + "' does not list its user", node.where());
  }
  for (size_t i = 0; i < node.outs.size(); ++i) {
    const Value* value = node.outs[i];
    if (value->producer() != &node || value->output_index() != i)
      broken(graph, "'" + value->name + "' names another producer", node.where());
    if (value->type.is_tensor() && value->type.dtype == DType::undefined && !value->users().empty())
      broken(graph, "'" + value->name + "' has no element type", node.where());
  }
  for (const auto& region : node.regions) region->verify();
}

}  // namespace

void Graph::verify() const {
  std::unordered_set<const Value*> defined, owned;
  for (const auto& value : values_) {
    owned.insert(value.get());
    if (value->constant()) defined.insert(value.get());
  }
  for (const Value* value : inputs) defined.insert(value);
  for (const Value* value : defined)
    if (!owned.contains(value)) broken(*this, "an input belongs to another graph", "");
  for (const auto& node : nodes_) {
    verify_node(*this, *node, defined);
    defined.insert(node->outs.begin(), node->outs.end());
  }
  for (const Value* value : outputs)
    if (!value || !defined.contains(value))
      broken(*this, "an output is never made", value ? value->name : "");
  for (const auto& value : values_)
    for (const Use& use : value->users())
      if (use.index >= use.node->in.size() || use.node->in[use.index] != value.get())
        broken(*this, "'" + value->name + "' lists a user that does not use it", "");
}

}  // namespace dais
