#include "runtime/step_cost.h"

#include <algorithm>

namespace dais {
namespace {

/// The type that a product's factor is kept in: what a dequantised one was made of.
DType kept_dtype(const Value& factor) {
  const Node* maker = factor.producer();
  const bool dequantised = maker && maker->op->name == "dequantize_linear";
  return (dequantised ? *maker->in[0] : factor).type.dtype;
}

DType narrowest_factor(const Node& node) {
  DType out = node.outs[0]->type.dtype == DType::f64 ? DType::f64 : DType::f32;
  for (const Value* value : node.in) {
    if (!value) continue;
    const DType dtype = kept_dtype(*value);
    const bool factor =
        dtype == DType::i8 || dtype == DType::u8 || dtype == DType::bf16 || dtype == DType::f16;
    if (factor && dtype_size(dtype) < dtype_size(out)) out = dtype;
  }
  return out;
}

/// The node alone in a graph, with inputs of these types and its own constants.
void isolate(const Node& node, std::span<const Type> in, Graph& graph) {
  Values inputs;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const Value* value = node.in[i];
    if (!value)
      inputs.push_back(nullptr);
    else if (value->constant())
      inputs.push_back(graph.add_constant(*value->constant()));
    else
      inputs.push_back(graph.add_input(in[i], {}));
  }
  std::vector<std::unique_ptr<Graph>> regions;
  for (const auto& region : node.regions) regions.push_back(region->clone());
  graph.add_node(*node.op, node.attrs, inputs, node.outs.size(), {}, std::move(regions));
}

/// Adds what each node costs. Those that stand for others are spelled out behind the last one, so
/// that the walk comes to them, too.
void add_costs(Graph& graph, StepCost& out) {
  double most = 0;
  for (const auto& node : graph.nodes()) {
    const Op& op = *node->op;
    if (op.decompose && (!op.cost || !node->regions.empty())) {
      op.decompose(graph, *node);
    } else if (op.cost) {
      const Cost cost = op.cost(*node);
      out.flops += cost.flops;
      if (graph.size() == 1 && cost.bytes > 0) out.bytes = cost.bytes;
      if (cost.flops <= most) continue;
      most = cost.flops;
      out.dtype = narrowest_factor(*node);
    }
  }
}

/// Constants inside fused bodies.
double constant_bytes(const Node& node) {
  double bytes = 0;
  for (const auto& region : node.regions)
    for (const auto& value : region->values())
      if (value->constant()) bytes += static_cast<double>(value->constant()->bytes());
  return bytes;
}

bool is_control_flow(const Node& node) { return node.op->reference && !node.regions.empty(); }

}  // namespace

StepCost cost_of(const Node& node, std::span<const Type> in) {
  StepCost out;
  if (is_control_flow(node)) return out;
  try {
    Graph graph;
    isolate(node, in, graph);
    add_costs(graph, out);
  } catch (const Error&) {
    // Sizes that only contents tell (of a shape that is computed, say) are missing here.
    return {};
  }
  return out;
}

StepCost cost_of(const StepTime& time) {
  const Node& node = *time.plan->steps()[time.step].node;
  StepCost out = cost_of(node, time.in);
  if (is_control_flow(node)) return out;
  if (out.bytes == 0) out.bytes = time.bytes + constant_bytes(node);
  return out;
}

}  // namespace dais
