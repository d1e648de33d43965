// Nodes on 16-bit floats that only f32 kernels could run are computed in f32 between casts: what
// their reference loops do as well, one element at a time. Casts of weights fold away.

#include <algorithm>

#include "ops/cast/cast.h"
#include "ops/quantize/quantize.h"
#include "ops/wide.h"
#include "passes/passes.h"

namespace dais {
namespace {

bool is_half(const Value* value) {
  return value && value->type.is_tensor() &&
         (value->type.dtype == DType::f16 || value->type.dtype == DType::bf16);
}

/// Quotients of quantisation are rounded to the type of the scale.
bool keeps_type(const Node& node) {
  return node.as<Cast>() || node.as<QuantizeLinear>() || node.as<DequantizeLinear>();
}

Tensor in_f32(const Tensor& half) {
  return Tensor::of<float>(half.shape(), std::span<const float>(to_wide<float>(half)));
}

/// The node with f32 in place of its 16-bit floats, alone in a graph; nullptr when the op's rules
/// do not allow that.
const Node* widened(const Node& node, Graph& alone) {
  Values in;
  for (const Value* value : node.in) {
    if (!value) {
      in.push_back(nullptr);
      continue;
    }
    Type type = value->type;
    if (is_half(value)) type.dtype = DType::f32;
    if (const Tensor* constant = value->constant())
      in.push_back(alone.add_constant(is_half(value) ? in_f32(*constant) : *constant));
    else
      in.push_back(alone.add_input(type, {}));
  }
  try {
    return &alone.add_node(*node.op, node.attrs, in, node.outs.size());
  } catch (const Error&) {
    return nullptr;
  }
}

/// Outputs of 16 bits become f32, others stay what they are.
bool gives_the_same(const Node& node, const Node& wide) {
  for (size_t i = 0; i < node.outs.size(); ++i) {
    const DType wanted = is_half(node.outs[i]) ? DType::f32 : node.outs[i]->type.dtype;
    if (wide.outs[i]->type.dtype != wanted) return false;
  }
  return true;
}

Values widen(Graph& graph, Node& node, const Target& target) {
  if (std::none_of(node.in.begin(), node.in.end(), is_half) || keeps_type(node)) return {};
  if (!node.regions.empty() || node.op->view || target.has_kernel(node)) return {};
  Graph alone;
  const Node* wide = widened(node, alone);
  if (!wide || !gives_the_same(node, *wide) || !target.has_kernel(*wide)) return {};
  Values in;
  for (Value* value : node.in)
    in.push_back(is_half(value) ? graph.add(Cast{.to = DType::f32}, {value}) : value);
  const Node& made = graph.add_node(*node.op, node.attrs, in, node.outs.size(), node.name);
  Values out;
  for (size_t i = 0; i < node.outs.size(); ++i)
    out.push_back(is_half(node.outs[i])
                      ? graph.add(Cast{.to = node.outs[i]->type.dtype}, {made.outs[i]})
                      : made.outs[i]);
  return out;
}

constexpr Rule kRules[] = {{.name = "widen_half", .apply_for = widen}};

}  // namespace

bool widen_half(Graph& graph, const Target& target) { return rewrite(graph, kRules, &target); }

}  // namespace dais
