// Scales and shifts per channel move into the constant weights of the convolution or product before
// them. Batch normalisation with constant statistics is such a scale and shift.

#include <cmath>

#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/window.h"
#include "passes/passes.h"

namespace dais {
namespace {

const Tensor* f32_constant(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  return tensor && tensor->dtype() == DType::f32 ? tensor : nullptr;
}

/// A constant of one value per channel that broadcasts along `axis` of a rank-`rank` tensor.
Tensor along_axis(const std::vector<float>& values, size_t rank, size_t axis) {
  Shape shape;
  shape.resize(rank - axis);
  shape[0] = static_cast<int64_t>(values.size());
  return Tensor::of<float>(shape, std::span<const float>(values));
}

/// BatchNormalization by constant statistics becomes a product and a sum.
Values split_batch_norm(Graph& graph, Node& node) {
  const auto* attrs = node.as<BatchNormalization>();
  if (!attrs || attrs->training_mode || !node.in[0]->type.ranked()) return {};
  for (size_t i = 1; i < 5; ++i)
    if (!f32_constant(node.in[i])) return {};
  if (node.in[0]->type.dtype != DType::f32 || node.in[0]->type.shape->size() < 2) return {};
  for (size_t i = 1; i < node.outs.size(); ++i)
    if (!node.outs[i]->users().empty() || graph.is_output(node.outs[i])) return {};
  const auto values = [&](size_t i) { return node.in[i]->constant()->data<float>(); };
  const size_t count = values(1).size();
  std::vector<float> factors(count), terms(count);
  for (size_t c = 0; c < count; ++c) {
    const double spread = std::sqrt(static_cast<double>(values(4)[c]) + attrs->epsilon);
    const double factor = values(1)[c] / spread;
    factors[c] = static_cast<float>(factor);
    terms[c] = static_cast<float>(values(2)[c] - factor * values(3)[c]);
  }
  const size_t rank = node.in[0]->type.shape->size();
  const size_t axis = channel_axis(rank, attrs->channels_last);
  Value* scaled = graph.add(
      Mul{}, {node.in[0], graph.add_constant(along_axis(factors, rank, axis))}, node.name);
  Values out(node.outs.size(), nullptr);
  out[0] = graph.add(Add{}, {scaled, graph.add_constant(along_axis(terms, rank, axis))}, node.name);
  return out;
}

/// How the weights of a linear node are laid out around its output channels.
struct Linear {
  Node* node = nullptr;
  size_t rank = 0, axis = 0;     ///< of the output, and its channels
  int64_t channels = 0;          ///< of the output
  int64_t outer = 1, inner = 1;  ///< weights are [outer, channels / outer, inner] values
  int64_t skip = 1;              ///< weights are [outer, skip, channels / outer, inner]
  float bias_factor = 1;
};

std::optional<Linear> linear_before(const Graph& graph, const Value* value) {
  Node* node = value ? value->producer() : nullptr;
  if (!node || !used_once(graph, value) || !value->type.ranked()) return {};
  Linear out{.node = node, .rank = value->type.shape->size()};
  if (!node->has(1) || !f32_constant(node->in[1])) return {};
  if (node->has(2) && !f32_constant(node->in[2])) return {};
  const Shape& w = node->in[1]->constant()->shape();
  if (const auto* conv = node->as<Conv>()) {
    out.axis = channel_axis(out.rank, conv->channels_last);
    out.channels = w[0];
    out.inner = w.elements(1, w.rank());
  } else if (const auto* transposed = node->as<ConvTranspose>()) {
    out.axis = channel_axis(out.rank, transposed->channels_last);
    out.outer = transposed->group;
    out.channels = w[1] * out.outer;
    out.skip = w[0] / out.outer;
    out.inner = w.elements(2, w.rank());
  } else if (const auto* gemm = node->as<Gemm>()) {
    out.axis = 1;
    out.channels = w[gemm->trans_b ? 0 : 1];
    out.skip = gemm->trans_b ? 1 : w[0];
    out.inner = gemm->trans_b ? w[1] : 1;
    out.bias_factor = gemm->beta;
    if (node->has(2)) {
      const Tensor& c = *node->in[2]->constant();
      const bool row =
          c.elements() == out.channels && c.rank() > 0 && c.shape().back() == out.channels;
      if (!row || gemm->beta == 0) return {};
    }
  } else {
    return {};
  }
  return out;
}

/// One value per channel of a constant that broadcasts to the linear node's output; empty: it does
/// not.
std::vector<float> channel_values(const Linear& linear, const Value* value) {
  const Tensor* tensor = f32_constant(value);
  if (!tensor || tensor->rank() > linear.rank) return {};
  const auto values = tensor->data<float>();
  if (values.size() == 1)
    return std::vector<float>(static_cast<size_t>(linear.channels), values[0]);
  const size_t skipped = linear.rank - tensor->rank();
  if (tensor->elements() != linear.channels || linear.axis < skipped) return {};
  if (tensor->shape()[linear.axis - skipped] != linear.channels) return {};
  return {values.begin(), values.end()};
}

Tensor scaled_weights(const Linear& linear, const std::vector<float>& factors) {
  Tensor out = linear.node->in[1]->constant()->clone();
  float* weights = out.data<float>().data();
  const int64_t each = linear.channels / linear.outer;
  for (int64_t block = 0; block < linear.outer * linear.skip; ++block)
    for (int64_t c = 0; c < each; ++c) {
      const float factor = factors[static_cast<size_t>(block / linear.skip * each + c)];
      for (int64_t i = 0; i < linear.inner; ++i) *weights++ *= factor;
    }
  return out;
}

/// The linear node again with other constants. `bias` may be empty: none.
Value* rebuild(Graph& graph, const Linear& linear, Value* weights, const std::vector<float>& bias) {
  const Node& old = *linear.node;
  Values in{old.in[0], weights};
  Attrs attrs = old.attrs;
  if (!bias.empty()) {
    in.push_back(graph.add_constant(
        Tensor::of<float>(Shape{static_cast<int64_t>(bias.size())}, std::span<const float>(bias))));
    if (const auto* gemm = old.as<Gemm>()) {
      Gemm changed = *gemm;
      changed.beta = 1;
      attrs = Attrs::of(changed);
    }
  }
  return graph.add_node(*old.op, std::move(attrs), std::move(in), 1, old.name).outs[0];
}

std::vector<float> bias_of(const Linear& linear) {
  if (!linear.node->has(2)) return {};
  const auto values = linear.node->in[2]->constant()->data<float>();
  std::vector<float> out(values.begin(), values.end());
  for (float& value : out) value *= linear.bias_factor;
  return out;
}

/// Whether `result` is of the linear node's own sizes, so that its operand did not widen it.
bool keeps_type(const Linear& linear, const Node& node) {
  return node.outs[0]->type == linear.node->outs[0]->type;
}

Values fold_scale(Graph& graph, Node& node) {
  const bool product = node.as<Mul>() != nullptr, quotient = node.as<Div>() != nullptr;
  if (!product && !quotient) return {};
  const size_t from = product && f32_constant(node.in[0]) ? 1 : 0;
  const auto linear = linear_before(graph, node.in[from]);
  if (!linear || !keeps_type(*linear, node)) return {};
  auto factors = channel_values(*linear, node.in[1 - from]);
  if (factors.empty()) return {};
  for (float& factor : factors) {
    if (quotient) factor = 1 / factor;
    if (!std::isfinite(factor)) return {};
  }
  std::vector<float> bias = bias_of(*linear);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] *= factors[c];
  return {rebuild(graph, *linear, graph.add_constant(scaled_weights(*linear, factors)), bias)};
}

Values fold_shift(Graph& graph, Node& node) {
  const bool sum = node.as<Add>() || (node.as<Sum>() && node.in.size() == 2);
  if (!sum && !node.as<Sub>()) return {};
  const size_t from = sum && f32_constant(node.in[0]) ? 1 : 0;
  const auto linear = linear_before(graph, node.in[from]);
  if (!linear || !keeps_type(*linear, node)) return {};
  const auto terms = channel_values(*linear, node.in[1 - from]);
  if (terms.empty()) return {};
  std::vector<float> bias = bias_of(*linear);
  bias.resize(terms.size(), 0.0F);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] += sum ? terms[c] : -terms[c];
  return {rebuild(graph, *linear, linear->node->in[1], bias)};
}

constexpr Rule kRules[] = {
    {"split_batch_norm", split_batch_norm}, {"fold_scale", fold_scale}, {"fold_shift", fold_shift}};

}  // namespace

bool fold_affine(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
