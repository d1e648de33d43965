#include <algorithm>

#include "ir/call.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/control/control.h"
#include "ops/control/region_types.h"
#include "ops/control/stack.h"

namespace dais {
namespace {

int64_t entry(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

void infer(Inference& c) {
  c.require(c.node.regions.size() == 1, "takes one region");
  const Graph& body = *c.node.regions[0];
  const Scan& scan = c.attrs<Scan>();
  const auto states = static_cast<size_t>(scan.states), scans = static_cast<size_t>(scan.scans);
  c.require(body.inputs.size() >= states + scans && body.outputs.size() >= states,
            "the body has too few inputs or outputs");
  c.require(c.outputs() <= body.outputs.size(), "has more outputs than its body");
  Dim length = c.fresh();
  if (scans > 0 && c.ranked(states)) {
    const Dims& shape = c.shape(states);
    length = shape[c.axis(entry(scan.input_axes, 0), shape.size())];
  }
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (i < states) {
      c.set(i, c.type(i));
      continue;
    }
    Type slice = outer_type(c, body, body.outputs[i]->type);
    if (slice.shape) {
      const size_t axis = c.axis(entry(scan.output_axes, i - states), slice.shape->size() + 1);
      slice.shape->insert(slice.shape->begin() + static_cast<ptrdiff_t>(axis), length);
    }
    c.set(i, std::move(slice));
  }
}

/// x[…, index, …] along an axis, as a tensor of one rank less.
Tensor slice_at(const Tensor& x, size_t axis, int64_t index) {
  Shape shape;
  for (size_t i = 0; i < x.rank(); ++i)
    if (i != axis) shape.push_back(x.shape()[i]);
  Tensor out(x.dtype(), shape);
  const int64_t outer = x.shape().elements(0, axis), size = x.shape()[axis],
                inner = x.shape().elements(axis + 1, x.rank());
  visit_storage(x.dtype(), [&]<typename T>() {
    for (int64_t o = 0; o < outer; ++o)
      std::copy_n(x.storage<T>() + (o * size + index) * inner, inner, out.storage<T>() + o * inner);
  });
  return out;
}

void run(Call& c) {
  const Graph& body = *c.node.regions[0];
  const Scan& scan = c.attrs<Scan>();
  const auto states = static_cast<size_t>(scan.states), scans = static_cast<size_t>(scan.scans);
  std::vector<Datum> carried;
  for (size_t i = 0; i < states; ++i) carried.push_back(c.datum(i));
  std::vector<size_t> axes;
  int64_t length = 0;
  for (size_t i = 0; i < scans; ++i) {
    const Tensor& x = c.in(states + i);
    axes.push_back(normalize_axis(entry(scan.input_axes, i), x.rank()));
    const int64_t size = x.shape()[axes[i]];
    c.require(i == 0 || size == length, "its sequences have different lengths");
    length = size;
  }
  std::vector<std::vector<Datum>> stacked(body.outputs.size() - states);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Datum> inputs = std::move(carried);
    for (size_t i = 0; i < scans; ++i) {
      const bool backwards = entry(scan.input_directions, i) == 1;
      inputs.emplace_back(
          slice_at(c.in(states + i), axes[i], backwards ? length - 1 - step : step));
    }
    for (size_t i = states + scans; i < c.inputs(); ++i) inputs.push_back(c.datum(i));
    auto results = c.run_region(0, std::move(inputs));
    carried.assign(std::make_move_iterator(results.begin()),
                   std::make_move_iterator(results.begin() + static_cast<ptrdiff_t>(states)));
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(std::move(results[states + i]));
  }
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (i < states)
      c.set(i, std::move(carried[i]));
    else
      c.set(i, stack(c, stacked[i - states], entry(scan.output_axes, i - states),
                     entry(scan.output_directions, i - states) == 1, body.outputs[i]->type));
  }
}

Values build(OnnxImport& c, Values in, Scan attrs, ImportedRegion body) {
  attrs.states = static_cast<int64_t>(in.size()) - attrs.scans;
  if (attrs.scans < 1 || attrs.states < 0)
    c.fail("num_scan_inputs is " + std::to_string(attrs.scans) + " with " +
           std::to_string(in.size()) + " inputs");
  in.insert(in.end(), body.captures.begin(), body.captures.end());
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(body.graph));
  return c.graph
      .add_node(Scan::op, Attrs::of(std::move(attrs)), std::move(in), c.outputs,
                std::string(c.name), std::move(regions))
      .outs;
}

Values import_9(OnnxImport& c) {
  Scan attrs;
  attrs.scans = c.integer("num_scan_inputs", 0);
  attrs.input_axes = c.integers("scan_input_axes");
  attrs.input_directions = c.integers("scan_input_directions");
  attrs.output_axes = c.integers("scan_output_axes");
  attrs.output_directions = c.integers("scan_output_directions");
  std::vector<Type> hints;
  for (const Value* value : c.in) hints.push_back(element_hint(value));
  return build(c, c.in, std::move(attrs), c.region("body", std::move(hints)));
}

/// Opset 8 scans axis 1 of each batch entry separately: an outer Scan over axis 0 without state
/// whose body is the Scan proper over the entry's axis 0.
Values import_8(OnnxImport& c) {
  if (c.has(0)) c.fail("sequence_lens of opset 8 is not supported", "Export with opset 9 or later");
  Scan inner;
  inner.scans = c.integer("num_scan_inputs", 0);
  inner.input_directions = c.integers("directions");
  if (c.in.empty()) c.fail("it has no inputs");
  const Values given(c.in.begin() + 1, c.in.end());
  inner.states = static_cast<int64_t>(given.size()) - inner.scans;
  if (inner.scans < 1 || inner.states < 0) c.fail("num_scan_inputs does not fit its inputs");
  ImportedRegion body = c.region("body");
  auto entry_graph = std::make_unique<Graph>();
  Values entry_inputs, outer_in = given;
  for (const Value* value : given) {
    Type type = value->type;
    if (type.shape && !type.shape->empty()) type.shape->erase(type.shape->begin());
    entry_inputs.push_back(entry_graph->add_input(type, value->name));
  }
  for (Value* capture : body.captures) {
    entry_inputs.push_back(entry_graph->add_input(capture->type, capture->name));
    outer_in.push_back(capture);
  }
  std::vector<std::unique_ptr<Graph>> inner_regions, outer_regions;
  inner_regions.push_back(std::move(body.graph));
  entry_graph->outputs = entry_graph
                             ->add_node(Scan::op, Attrs::of(inner), entry_inputs, c.outputs,
                                        std::string(c.name), std::move(inner_regions))
                             .outs;
  outer_regions.push_back(std::move(entry_graph));
  Scan outer;
  outer.scans = static_cast<int64_t>(given.size());
  return c.graph
      .add_node(Scan::op, Attrs::of(outer), std::move(outer_in), c.outputs, std::string(c.name),
                std::move(outer_regions))
      .outs;
}

OnnxNode export_as(const Node& node, int64_t) {
  const Scan& scan = *node.as<Scan>();
  const auto split = node.in.begin() + scan.states + scan.scans;
  OnnxNode out{.type = "Scan", .in = Values(node.in.begin(), split)};
  out.attributes.emplace_back("num_scan_inputs", scan.scans);
  const auto state = [&](const char* name, const std::vector<int64_t>& list) {
    if (!list.empty()) out.attributes.emplace_back(name, list);
  };
  state("scan_input_axes", scan.input_axes);
  state("scan_input_directions", scan.input_directions);
  state("scan_output_axes", scan.output_axes);
  state("scan_output_directions", scan.output_directions);
  out.regions = {{"body", node.regions[0].get(), Values(split, node.in.end())}};
  return out;
}

}  // namespace

const Op Scan::op{
    .name = "scan",
    .attrs = &AttrsOf<Scan>::info,
    .infer = infer,
    .reference = run,
    .onnx = {{.type = "Scan", .since = 9, .import = import_9, .export_as = export_as},
             {.type = "Scan", .since = 8, .until = 8, .import = import_8}},
};

}  // namespace dais
