#include "ops/control/control.h"

#include "ir/call.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/control/region_types.h"

namespace dais {
namespace {

void infer_if(Inference& c) {
  c.require(c.node.regions.size() == 2, "takes two regions");
  const Graph& yes = *c.node.regions[0];
  const Graph& no = *c.node.regions[1];
  if (yes.outputs.size() != no.outputs.size())
    c.fail("the branches give " + std::to_string(yes.outputs.size()) + " and " +
           std::to_string(no.outputs.size()) + " outputs");
  c.require(c.outputs() <= yes.outputs.size(), "has more outputs than its branches");
  for (size_t i = 0; i < c.outputs(); ++i)
    c.set(i, merged_type(c, outer_type(c, yes, yes.outputs[i]->type),
                         outer_type(c, no, no.outputs[i]->type)));
}

void run_if(Call& c) {
  const Tensor& condition = c.in(0);
  c.require(condition.dtype() == DType::boolean && condition.elements() == 1,
            "the condition must be one boolean");
  const bool yes = condition.data<bool>()[0];
  const size_t split = 1 + static_cast<size_t>(c.attrs<If>().then_captures);
  std::vector<Datum> captures;
  for (size_t i = yes ? 1 : split; i < (yes ? split : c.inputs()); ++i)
    captures.push_back(c.datum(i));
  auto results = c.run_region(yes ? 0 : 1, std::move(captures));
  for (size_t i = 0; i < c.outputs(); ++i) c.set(i, std::move(results[i]));
}

Values import_if(OnnxImport& c) {
  ImportedRegion yes = c.region("then_branch"), no = c.region("else_branch");
  Values in{c.input(0)};
  in.insert(in.end(), yes.captures.begin(), yes.captures.end());
  in.insert(in.end(), no.captures.begin(), no.captures.end());
  const If attrs{static_cast<int64_t>(yes.captures.size())};
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(yes.graph));
  regions.push_back(std::move(no.graph));
  return c.graph
      .add_node(If::op, Attrs::of(attrs), std::move(in), c.outputs, std::string(c.name),
                std::move(regions))
      .outs;
}

OnnxNode export_if(const Node& node, int64_t) {
  const auto split = node.in.begin() + 1 + node.as<If>()->then_captures;
  OnnxNode out{.type = "If", .in = {node.in[0]}};
  out.regions = {{"then_branch", node.regions[0].get(), Values(node.in.begin() + 1, split)},
                 {"else_branch", node.regions[1].get(), Values(split, node.in.end())}};
  return out;
}

}  // namespace

const Op If::op{
    .name = "if",
    .attrs = &AttrsOf<If>::info,
    .infer = infer_if,
    .reference = run_if,
    .onnx = {{.type = "If", .import = import_if, .export_as = export_if}},
};

namespace ops {
void define_control(OpRegistry& registry) {
  registry.add(If::op);
  registry.add(Loop::op);
  registry.add(Scan::op);
}
}  // namespace ops
}  // namespace dais
