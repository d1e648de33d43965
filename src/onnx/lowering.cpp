#include <algorithm>
#include <iterator>

#include "ir/onnx_export.h"
#include "onnx/exporter.h"
#include "onnx/late_features.h"

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

/// The node in terms that the opset has; throws `unsupported` where there are none.
Values parts_of(Graph& graph, Node& node, const LateFeature* late, int64_t opset) {
  if (late && late->parts) return late->parts(graph, node);
  Values parts = node.op->decompose ? node.op->decompose(graph, node) : Values{};
  if (!parts.empty()) return parts;
  const std::string name(node.op->name);
  if (late && late->attribute.empty())
    no_form(node, name + " with input " + std::to_string(late->input), opset, late->since);
  if (late) no_form(node, name + " with " + std::string(late->attribute), opset, late->since);
  int64_t since = opset;
  while (since <= kNewestOpset && !export_rule(*node.op, since)) ++since;
  no_form(node, "op " + name, opset, since);
}

void replace_by_parts(Graph& graph, Node& node, const LateFeature* late, int64_t opset) {
  const Graph::InsertBefore here(graph, &node);
  const Values parts = parts_of(graph, node, late, opset);
  for (size_t i = 0; i < node.outs.size() && i < parts.size(); ++i)
    if (parts[i]) graph.replace_uses(node.outs[i], parts[i]);
}

void check_element_types(const Node& node, int64_t opset) {
  const auto check = [&](const Value* value) {
    const int64_t since = value ? first_opset(value->type.dtype) : 1;
    if (opset < since)
      no_form(node, "element type " + std::string(dtype_name(value->type.dtype)), opset, since);
  };
  std::for_each(node.in.begin(), node.in.end(), check);
  std::for_each(node.outs.begin(), node.outs.end(), check);
}

}  // namespace

void lower_to_onnx(Graph& graph, int64_t opset) {
  const auto& nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    Node& node = **at;
    check_element_types(node, opset);
    const LateFeature* late = late_feature(node, opset);
    if (!late && export_rule(*node.op, opset)) {
      for (const auto& region : node.regions) lower_to_onnx(*region, opset);
      ++at;
      continue;
    }
    // The new nodes stand before this one and are looked at next.
    const bool first = at == nodes.begin();
    const auto before = first ? at : std::prev(at);
    replace_by_parts(graph, node, late, opset);
    graph.erase(node);
    at = first ? nodes.begin() : std::next(before);
  }
}

}  // namespace dais::onnx
