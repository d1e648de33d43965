#include <algorithm>

#include "ir/call.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/control/control.h"
#include "ops/control/region_types.h"
#include "ops/control/stack.h"

namespace dais {
namespace {

/// A carried value keeps the sizes that the body leaves alone; others may change each time round.
Type state_type(Inference& c, const Type& initial, const Type& inside, const Type& next) {
  if (!initial.is_tensor()) return initial;
  Type out = Type::tensor(next.dtype);
  if (!initial.shape || !inside.shape || !next.shape ||
      initial.shape->size() != next.shape->size() || inside.shape->size() != next.shape->size())
    return out;
  out.shape = initial.shape;
  for (size_t axis = 0; axis < next.shape->size(); ++axis) {
    const Dim& after = (*next.shape)[axis];
    const bool kept =
        after == (*inside.shape)[axis] || (after.is_constant() && after == (*initial.shape)[axis]);
    if (!kept) (*out.shape)[axis] = c.fresh();
  }
  return out;
}

void infer(Inference& c) {
  c.require(c.node.regions.size() == 1, "takes one region");
  const Graph& body = *c.node.regions[0];
  const auto states = static_cast<size_t>(c.attrs<Loop>().states);
  c.require(body.outputs.size() >= states + 1 && body.inputs.size() >= states + 2,
            "the body has too few inputs or outputs for its loop-carried values");
  c.require(c.outputs() + 1 <= body.outputs.size(), "has more outputs than its body");
  for (size_t i = 0; i < c.outputs(); ++i) {
    const Type& next = body.outputs[i + 1]->type;
    if (i < states) {
      c.set(i, state_type(c, c.type(i + 2), body.inputs[i + 2]->type, next));
      continue;
    }
    Type slice = outer_type(c, body, next);
    if (slice.shape) slice.shape->insert(slice.shape->begin(), c.fresh());
    c.set(i, std::move(slice));
  }
}

bool truth(const Call& c, const Datum& value) {
  if (value.kind != Datum::Kind::tensor || value.tensor.dtype() != DType::boolean ||
      value.tensor.elements() != 1)
    c.fail("the loop condition must be one boolean");
  return value.tensor.data<bool>()[0];
}

void run(Call& c) {
  const Graph& body = *c.node.regions[0];
  const auto states = static_cast<size_t>(c.attrs<Loop>().states);
  const int64_t trips = c.has(0) ? c.in(0).to_ints().at(0) : INT64_MAX;
  bool go = !c.has(1) || truth(c, c.datum(1));
  std::vector<Datum> carried;
  for (size_t i = 0; i < states; ++i) carried.push_back(c.datum(2 + i));
  std::vector<std::vector<Datum>> scans(body.outputs.size() - 1 - states);
  for (int64_t trip = 0; trip < trips && go; ++trip) {
    std::vector<Datum> inputs{Tensor::scalar<int64_t>(trip), Tensor::scalar<bool>(true)};
    std::move(carried.begin(), carried.end(), std::back_inserter(inputs));
    for (size_t i = 2 + states; i < c.inputs(); ++i) inputs.push_back(c.datum(i));
    auto results = c.run_region(0, std::move(inputs));
    go = truth(c, results[0]);
    carried.assign(std::make_move_iterator(results.begin() + 1),
                   std::make_move_iterator(results.begin() + 1 + static_cast<ptrdiff_t>(states)));
    for (size_t i = 0; i < scans.size(); ++i)
      scans[i].push_back(std::move(results[1 + states + i]));
  }
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (i < states)
      c.set(i, std::move(carried[i]));
    else
      c.set(i, stack(c, scans[i - states], 0, false, body.outputs[i + 1]->type));
  }
}

Values import(OnnxImport& c) {
  const size_t states = c.in.size() > 2 ? c.in.size() - 2 : 0;
  // A body may leave its inputs' types to the loop. Sizes may change each time round.
  std::vector<Type> hints{Type::tensor(DType::i64, Dims{}), Type::tensor(DType::boolean, Dims{})};
  for (size_t i = 0; i < states; ++i) hints.push_back(element_hint(c.input(i + 2)));
  ImportedRegion body = c.region("body", std::move(hints));
  Values in = c.in;
  in.resize(std::max<size_t>(in.size(), 2), nullptr);
  in.insert(in.end(), body.captures.begin(), body.captures.end());
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(body.graph));
  return c.graph
      .add_node(Loop::op, Attrs::of(Loop{static_cast<int64_t>(states)}), std::move(in), c.outputs,
                std::string(c.name), std::move(regions))
      .outs;
}

OnnxNode export_as(const Node& node, int64_t) {
  const auto split = node.in.begin() + 2 + node.as<Loop>()->states;
  OnnxNode out{.type = "Loop", .in = Values(node.in.begin(), split)};
  out.regions = {{"body", node.regions[0].get(), Values(split, node.in.end())}};
  return out;
}

}  // namespace

const Op Loop::op{
    .name = "loop",
    .attrs = &AttrsOf<Loop>::info,
    .infer = infer,
    .reference = run,
    .onnx = {{.type = "Loop", .import = import, .export_as = export_as}},
};

}  // namespace dais
