#include <algorithm>
#include <iterator>

#include "onnx/exporter.h"

namespace dais::onnx {

const OnnxRule* export_rule(const Op& op, int64_t opset) {
  const auto usable = [&](const OnnxRule& rule) {
    const int64_t version = rule.domain.empty() ? opset : newest_opset(rule.domain);
    const bool has_form = rule.import == nullptr || rule.export_as != nullptr;
    return has_form && rule.since <= version && version <= rule.until;
  };
  // The standard domain is what other programs know best.
  for (const auto& rule : op.onnx)
    if (rule.domain.empty() && usable(rule)) return &rule;
  for (const auto& rule : op.onnx)
    if (usable(rule)) return &rule;
  return nullptr;
}

namespace {

void replace_by_parts(Graph& graph, Node& node, int64_t opset) {
  if (!node.op->decompose)
    throw Error(
        Code::unsupported,
        "op " + std::string(node.op->name) + " has no form in opset " + std::to_string(opset),
        node.where(), "A newer opset may have one");
  const Graph::InsertBefore here(graph, &node);
  const Values parts = node.op->decompose(graph, node);
  for (size_t i = 0; i < node.outs.size() && i < parts.size(); ++i)
    if (parts[i]) graph.replace_uses(node.outs[i], parts[i]);
}

}  // namespace

void lower_to_onnx(Graph& graph, int64_t opset) {
  const auto& nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    Node& node = **at;
    if (export_rule(*node.op, opset)) {
      for (const auto& region : node.regions) lower_to_onnx(*region, opset);
      ++at;
      continue;
    }
    // The new nodes stand before this one and are looked at next.
    const bool first = at == nodes.begin();
    const auto before = first ? at : std::prev(at);
    replace_by_parts(graph, node, opset);
    graph.erase(node);
    at = first ? nodes.begin() : std::next(before);
  }
}

}  // namespace dais::onnx
