#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/kept.h"
#include "ops/sequence/sequence.h"

namespace dais {
namespace {

void infer(Inference& c) {
  const Graph& body = *c.node.regions[0];
  c.require(c.outputs() <= body.outputs.size(), "has more outputs than its body");
  for (size_t i = 0; i < c.outputs(); ++i) {
    Type element = body.outputs[i]->type;
    if (element.shape)
      for (Dim& dim : *element.shape)
        if (!dim.is_constant()) dim = varying();
    c.set(i, Type::sequence(element));
  }
}

void run(Call& c) {
  const auto formals = static_cast<size_t>(c.attrs<SequenceMap>().formals);
  const size_t count = sequence_items(c, 0).size();
  std::vector<std::vector<Datum>> results(c.outputs());
  for (size_t at = 0; at < count; ++at) {
    std::vector<Datum> inputs;
    for (size_t i = 0; i < c.inputs(); ++i) {
      const bool each = i < formals && c.datum(i).kind == Datum::Kind::sequence;
      if (each && sequence_items(c, i).size() != count) c.fail("the sequences differ in length");
      inputs.push_back(each ? sequence_items(c, i)[at] : c.datum(i));
    }
    auto outputs = c.run_region(0, std::move(inputs));
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(kept(outputs.at(i)));
  }
  for (size_t i = 0; i < results.size(); ++i) c.set(i, Datum::sequence(std::move(results[i])));
}

Values import(OnnxImport& x) {
  std::vector<Type> hints;
  for (const Value* value : x.in) {
    Type type = value ? value->type : Type{};
    if (type.kind == Type::Kind::sequence) type = Type(*type.element);
    // Inside the body one symbol would stand for sizes that differ.
    if (type.shape && std::ranges::find(*type.shape, varying()) != type.shape->end())
      type.shape.reset();
    hints.push_back(std::move(type));
  }
  ImportedRegion body = x.region("body", std::move(hints));
  const SequenceMap attrs{static_cast<int64_t>(x.in.size())};
  Values in = x.in;
  in.insert(in.end(), body.captures.begin(), body.captures.end());
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(body.graph));
  return x.graph
      .add_node(SequenceMap::op, Attrs::of(attrs), std::move(in), x.outputs, std::string(x.name),
                std::move(regions))
      .outs;
}

OnnxNode export_as(const Node& node, int64_t) {
  const auto split = node.in.begin() + node.as<SequenceMap>()->formals;
  OnnxNode out{.type = "SequenceMap", .in = Values(node.in.begin(), split)};
  out.regions = {{"body", node.regions[0].get(), Values(split, node.in.end())}};
  return out;
}

}  // namespace

const Op SequenceMap::op{
    .name = "sequence_map",
    .attrs = &AttrsOf<SequenceMap>::info,
    .infer = infer,
    .reference = run,
    .onnx = {{.type = "SequenceMap", .since = 17, .import = import, .export_as = export_as}},
};

}  // namespace dais
