// Operators that leave their input as it is go away; chains of reshapes, transposes, casts and
// limits become one.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "passes/passes.h"

namespace dais {
namespace {

const Tensor* constant(const Node& node, size_t i) {
  return node.has(i) ? node.in[i]->constant() : nullptr;
}

/// All elements are this number.
bool all_are(const Tensor* tensor, double wanted) {
  if (!tensor || !NumericTypes::contains(tensor->dtype())) return false;
  for (int64_t i = 0; i < tensor->elements(); ++i)
    if (tensor->to_double(i) != wanted) return false;
  return true;
}

bool same_static_type(const Value* a, const Value* b) {
  return a->type.is_tensor() && a->type == b->type && a->type.static_shape();
}

std::vector<int64_t> order_of(const Node& transpose) {
  std::vector<int64_t> perm = transpose.as<Transpose>()->perm;
  if (!perm.empty() || !transpose.in[0]->type.ranked()) return perm;
  perm.resize(transpose.in[0]->type.shape->size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  return perm;
}

bool in_order(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return !perm.empty();
}

/// Whether the node's output is its input 0, element by element.
bool changes_nothing(const Node& node) {
  const Value *x = node.in[0], *y = node.outs[0];
  if (node.as<Transpose>()) return in_order(order_of(node));
  if (node.as<Cast>()) return x->type.dtype == y->type.dtype;
  if (node.as<Concat>()) return node.in.size() == 1;
  if (node.as<Pad>()) return all_are(constant(node, 1), 0);
  if (node.as<Slice>())
    return same_static_type(x, y) && (!node.has(4) || all_are(constant(node, 4), 1));
  if (node.as<Reshape>() || node.as<Expand>()) return same_static_type(x, y);
  if (!(x->type == y->type)) return false;
  if (node.as<Mul>() || node.as<Div>()) return all_are(constant(node, 1), 1);
  return (node.as<Add>() || node.as<Sub>()) && all_are(constant(node, 1), 0);
}

Values drop_unchanged(Graph& graph, Node& node) {
  if (node.in.empty() || !node.has(0) || node.outs.size() != 1) return {};
  // Outputs of the graph keep a value of their own.
  if (graph.is_output(node.outs[0])) return {};
  if (changes_nothing(node)) return {node.in[0]};
  const bool swapped = (node.as<Mul>() && all_are(constant(node, 0), 1)) ||
                       (node.as<Add>() && all_are(constant(node, 0), 0));
  if (swapped && node.in[1]->type == node.outs[0]->type) return {node.in[1]};
  return {};
}

bool reshapes(const Node& node) {
  return node.as<Reshape>() || node.as<Flatten>() || node.as<Squeeze>() || node.as<Unsqueeze>();
}

/// A shape that gives the node's output whatever axes its input has; nullptr when there is none.
Value* shape_for(Graph& graph, const Node& node) {
  if (node.as<Reshape>()) {
    const Tensor* given = constant(node, 1);
    const auto sizes = given ? given->to_ints() : std::vector<int64_t>{0};
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) return node.in[1];
  }
  const auto shape = node.outs[0]->type.static_shape();
  if (!shape || shape->elements() == 0) return nullptr;
  return graph.add_constant(Tensor::ints(std::vector<int64_t>(shape->begin(), shape->end())));
}

Values merge_reshapes(Graph& graph, Node& node) {
  if (!reshapes(node)) return {};
  const Node* inner = node.in[0]->producer();
  if (!inner || !reshapes(*inner)) return {};
  Value* source = inner->in[0];
  if (same_static_type(source, node.outs[0]) && !graph.is_output(node.outs[0])) return {source};
  Value* shape = shape_for(graph, node);
  if (!shape) return {};
  return {graph.add(Reshape{}, {source, shape}, node.name)};
}

Values merge_transposes(Graph& graph, Node& node) {
  if (!node.as<Transpose>()) return {};
  const Node* inner = producer_as<Transpose>(node.in[0]);
  if (!inner) return {};
  const auto first = order_of(*inner), second = order_of(node);
  if (first.empty() || first.size() != second.size()) return {};
  std::vector<int64_t> both;
  for (const int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
  if (in_order(both) && !graph.is_output(node.outs[0])) return {inner->in[0]};
  return {graph.add(Transpose{both}, {inner->in[0]}, node.name)};
}

/// Whether every number of type `from` is one of type `to`.
bool holds(DType to, DType from) {
  const bool wide = to == DType::f32 || to == DType::f64;
  switch (from) {
    case DType::f16:
    case DType::bf16: return wide;
    case DType::f32: return to == DType::f64;
    case DType::boolean:
    case DType::u8:
    case DType::i8: return wide || to == DType::i32 || to == DType::i64;
    case DType::u16:
    case DType::i16: return wide || to == DType::i32 || to == DType::i64;
    case DType::i32: return to == DType::i64 || to == DType::f64;
    default: return false;
  }
}

Values merge_casts(Graph& graph, Node& node) {
  const auto* outer = node.as<Cast>();
  const Node* inner = outer ? producer_as<Cast>(node.in[0]) : nullptr;
  if (!inner || !holds(inner->outs[0]->type.dtype, inner->in[0]->type.dtype)) return {};
  return {graph.add(*outer, {inner->in[0]}, node.name)};
}

/// What Relu and Clip with constant bounds do to f32 values.
struct Limits {
  float low = -INFINITY, high = INFINITY;
  float clamp(float value) const { return std::fmin(std::fmax(value, low), high); }
};

std::optional<Limits> limits_of(const Node* node) {
  if (!node || node->outs[0]->type.dtype != DType::f32) return {};
  if (node->as<Relu>()) return Limits{.low = 0};
  if (!node->as<Clip>()) return {};
  Limits out;
  for (size_t i = 1; i < node->in.size(); ++i) {
    if (!node->has(i)) continue;
    const Tensor* bound = constant(*node, i);
    if (!bound || bound->elements() != 1) return {};
    (i == 1 ? out.low : out.high) = bound->data<float>()[0];
  }
  return out.low <= out.high ? std::optional(out) : std::nullopt;
}

Values merge_limits(Graph& graph, Node& node) {
  const auto outer = limits_of(&node);
  const Node* producer = outer ? node.in[0]->producer() : nullptr;
  const auto inner = limits_of(producer);
  if (!inner || !used_once(graph, node.in[0])) return {};
  const Limits both{outer->clamp(inner->low), outer->clamp(inner->high)};
  Value* x = producer->in[0];
  if (both.low == 0 && both.high == INFINITY) return {graph.add(Relu{}, {x}, node.name)};
  const auto bound = [&](float value) {
    return std::isinf(value) ? nullptr : graph.add_constant(Tensor::scalar(value));
  };
  return {graph.add(Clip{}, {x, bound(both.low), bound(both.high)}, node.name)};
}

constexpr Rule kRules[] = {{"drop_unchanged", drop_unchanged},
                           {"merge_reshapes", merge_reshapes},
                           {"merge_transposes", merge_transposes},
                           {"merge_casts", merge_casts},
                           {"merge_limits", merge_limits}};

}  // namespace

bool simplify_moves(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
