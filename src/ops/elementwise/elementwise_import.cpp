#include <algorithm>

#include "ir/onnx_import.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/reshape/reshape.h"
#include "ops/split/split.h"

namespace dais {
namespace {

/// The op of the same name; attributes of older versions that have no meaning any more
/// (consumed_inputs, broadcast) are passed over.
Values import_by_name(OnnxImport& i) {
  const Op& op = *elementwise_row(i.type)->op;
  auto attrs = op.attrs->make();
  i.fill(*op.attrs, attrs.get(), true);
  return i.graph
      .add_node(op, Attrs(op.attrs, std::move(attrs)), i.in, i.outputs, std::string(i.name))
      .outs;
}

/// Before opset 7 the second operand was aligned at `axis` of the first, not at the end.
Values import_aligned(OnnxImport& i) {
  const int64_t axis = i.integer("axis", -1);
  if (i.integer("broadcast", 0) != 0 && i.attribute("axis") && i.has(0) && i.has(1)) {
    const Type &a = i.in[0]->type, &b = i.in[1]->type;
    if (!a.ranked() || !b.ranked()) i.fail("'axis' with an operand of unknown rank");
    const auto rank = static_cast<int64_t>(a.shape->size());
    const int64_t start = axis < 0 ? axis + rank : axis;
    const int64_t trailing = rank - start - static_cast<int64_t>(b.shape->size());
    if (start < 0 || trailing < 0)
      i.fail("axis " + std::to_string(axis) + " does not align the operands");
    i.in[1] = append_axes(i.graph, i.in[1], static_cast<size_t>(trailing));
  }
  return import_by_name(i);
}

/// Before opset 11 Clip's bounds were attributes.
Values import_clip_attributes(OnnxImport& i) {
  if (i.in.size() != 1 || !i.has(0)) i.fail("one input is expected");
  Values in{i.in[0], nullptr, nullptr};
  if (i.attribute("min")) in[1] = i.scalar_like(i.number("min", 0), in[0]);
  if (i.attribute("max")) in[2] = i.scalar_like(i.number("max", 0), in[0]);
  return i.emit(Clip{}, std::move(in));
}

/// Before opset 7 PRelu's slope was one number, or one per channel (axis 1).
Values import_prelu_channels(OnnxImport& i) {
  if (i.has(0) && i.has(1)) {
    const Type &x = i.in[0]->type, &slope = i.in[1]->type;
    if (!x.ranked() || !slope.ranked()) i.fail("an input of unknown rank");
    if (slope.shape->size() == 1 && !slope.shape->front().is(1) && x.shape->size() > 2)
      i.in[1] = append_axes(i.graph, i.in[1], x.shape->size() - 2);
  }
  return import_by_name(i);
}

Values import_selu_1(OnnxImport& i) {
  Selu selu{.alpha = 1.6732f, .gamma = 1.0507f};
  i.fill(AttrsOf<Selu>::info, &selu, true);
  return i.emit(selu, i.in);
}

Values import_bias_gelu(OnnxImport& i) {
  return i.emit(Gelu{}, {i.graph.add(Add{}, {i.input(0), i.input(1)})});
}
Values import_fast_gelu(OnnxImport& i) {
  Value* x = i.has(1) ? i.graph.add(Add{}, {i.input(0), i.input(1)}) : i.input(0);
  return i.emit(Gelu{.approximate = "tanh"}, {x});
}
Values import_quick_gelu(OnnxImport& i) {
  return i.emit(Swish{.alpha = i.number("alpha", 1.702f)}, {i.input(0)});
}
Values import_bias_add(OnnxImport& i) {
  return i.emit(Add{}, {i.graph.add(Add{}, {i.input(0), i.input(1)}), i.input(2)});
}

/// x + bias cut in two along the last axis: the left half times the Gelu of the right one.
Values import_bias_split_gelu(OnnxImport& i) {
  Value* biased = i.graph.add(Add{}, {i.input(0), i.input(1)});
  const Values halves = i.graph.add_node(Split{.axis = -1, .num_outputs = 2}, {biased}, 2).outs;
  return i.emit(Mul{}, {halves[0], i.graph.add(Gelu{}, {halves[1]})});
}

// Operators of the first opsets that were never more than experiments, still met in old files.
Values import_affine(OnnxImport& i) {
  Value* x = i.input(0);
  Value* scaled = i.graph.add(Mul{}, {x, i.scalar_like(i.number("alpha", 1), x)});
  return i.emit(Add{}, {scaled, i.scalar_like(i.number("beta", 0), x)});
}
Values import_scaled_tanh(OnnxImport& i) {
  Value* x = i.input(0);
  Value* inner = i.graph.add(Mul{}, {x, i.scalar_like(i.number("beta", 1), x)});
  return i.emit(Mul{}, {i.graph.add(Tanh{}, {inner}), i.scalar_like(i.number("alpha", 1), x)});
}
Values import_parametric_softplus(OnnxImport& i) {
  Value* x = i.input(0);
  Value* inner = i.graph.add(Mul{}, {x, i.scalar_like(i.number("beta", 1), x)});
  return i.emit(Mul{}, {i.graph.add(Softplus{}, {inner}), i.scalar_like(i.number("alpha", 1), x)});
}

}  // namespace

Value* append_axes(Graph& graph, Value* value, size_t count) {
  if (count == 0) return value;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(-static_cast<int64_t>(i) - 1);
  return graph.add(Unsqueeze{}, {value, graph.add_constant(Tensor::ints(axes))});
}

Value* add_activation(Graph& graph, std::string_view onnx_name, std::span<const float> parameters,
                      Value* x) {
  if (onnx_name.empty()) return x;
  const ElementwiseRow* row = elementwise_row(onnx_name);
  if (!row || row->operands != 1) {
    std::vector<std::string> names;
    for (const auto& known : elementwise_rows())
      if (known.operands == 1) names.emplace_back(known.onnx);
    const std::string guess = nearest(onnx_name, names);
    throw Error(Code::invalid_model, "activation '" + std::string(onnx_name) + "' is not known", "",
                guess.empty() ? "" : "Did you mean '" + guess + "'?");
  }
  auto attrs = row->op->attrs->make();
  const auto fields = row->op->attrs->fields;
  for (size_t i = 0; i < std::min(fields.size(), parameters.size()); ++i)
    fields[i].set(attrs.get(), parameters[i]);
  return graph.add_node(*row->op, Attrs(row->op->attrs, std::move(attrs)), {x}).outs[0];
}

std::vector<OnnxRule> elementwise_onnx_rules(const ElementwiseRow& row) {
  constexpr int newest = std::numeric_limits<int>::max();
  auto rule = [&](int since, int until, Values (*import)(OnnxImport&)) {
    return OnnxRule{.type = row.onnx, .since = since, .until = until, .import = import};
  };
  if (row.function == Scalar::clip)
    return {rule(1, 10, import_clip_attributes), rule(11, newest, nullptr)};
  if (row.function == Scalar::prelu)
    return {rule(1, 6, import_prelu_channels), rule(7, newest, nullptr)};
  if (row.function == Scalar::selu) return {rule(1, 5, import_selu_1), rule(6, newest, nullptr)};
  std::vector<OnnxRule> rules;
  if (row.since > 1) {
    rules = {rule(row.since, newest, nullptr)};
  } else if (row.operands == 2) {
    rules = {rule(1, 6, import_aligned), rule(7, newest, nullptr)};
  } else {
    // Min, Max, Sum and Mean dropped consumed_inputs in opset 6, as all others did.
    rules = {rule(1, 5, import_by_name), rule(6, newest, nullptr)};
  }
  if (row.function == Scalar::gelu)
    rules.push_back({.type = "Gelu", .domain = "com.microsoft", .import = import_by_name});
  return rules;
}

void add_elementwise_rules(OpRegistry& registry) {
  const std::string_view microsoft = "com.microsoft";
  registry.add_rule({.type = "BiasGelu", .domain = microsoft, .import = import_bias_gelu});
  registry.add_rule({.type = "FastGelu", .domain = microsoft, .import = import_fast_gelu});
  registry.add_rule({.type = "QuickGelu", .domain = microsoft, .import = import_quick_gelu});
  registry.add_rule({.type = "BiasAdd", .domain = microsoft, .import = import_bias_add});
  registry.add_rule(
      {.type = "BiasSplitGelu", .domain = microsoft, .import = import_bias_split_gelu});
  registry.add_rule({.type = "Affine", .until = 9, .import = import_affine});
  registry.add_rule({.type = "ScaledTanh", .until = 9, .import = import_scaled_tanh});
  registry.add_rule(
      {.type = "ParametricSoftplus", .until = 9, .import = import_parametric_softplus});
}

}  // namespace dais
