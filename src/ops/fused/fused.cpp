#include "ops/fused/fused.h"

#include "ir/call.h"
#include "ir/inference.h"

namespace dais {
namespace {

bool typed_as_given(const Inference& c, const Graph& body) {
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (!(c.type(i) == body.inputs[i]->type)) return false;
  return true;
}

/// The body was typed when it was made; other input types (concrete ones while running) need a copy
/// that is inferred anew.
void infer(Inference& c) {
  c.require(c.node.regions.size() == 1, "takes one region");
  const Graph& body = *c.node.regions[0];
  c.require(c.inputs() == body.inputs.size(), "inputs do not match its body");
  c.require(c.outputs() == body.outputs.size(), "outputs do not match its body");
  if (typed_as_given(c, body)) {
    for (size_t i = 0; i < c.outputs(); ++i) c.set(i, body.outputs[i]->type);
    return;
  }
  Graph scratch;
  Values inputs;
  for (size_t i = 0; i < c.inputs(); ++i) inputs.push_back(scratch.add_input(c.type(i), {}));
  const Values outputs = body.inline_into(scratch, inputs);
  for (size_t i = 0; i < c.outputs(); ++i) c.set(i, outputs[i]->type);
}

Values decompose(Graph& graph, const Node& node) {
  return node.regions[0]->inline_into(graph, node.in);
}

Cost cost(const Node& node) {
  Cost total;
  for (const auto& inner : node.regions[0]->nodes())
    if (inner->op->cost) total.flops += inner->op->cost(*inner).flops;
  return total;
}

}  // namespace

const Op Fused::op{
    .name = "fused",
    .attrs = &AttrsOf<Fused>::info,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .onnx = {},
};

namespace ops {
void define_fused(OpRegistry& registry) { registry.add(Fused::op); }
}  // namespace ops
}  // namespace dais
