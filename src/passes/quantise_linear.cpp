// Quantised models as exporters write them, dequantise - operator - quantise, become integer
// operators where the target has kernels for them; the scales and zero points stay what they are.
// Dequantisation moves behind operators that only move elements, where it mostly meets a
// quantisation of the same scale and goes away. Integer products followed by their scales become
// one node.

#include <cmath>

#include "ops/cast/cast.h"
#include "ops/conv/conv.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "passes/passes.h"

namespace dais {
namespace {

bool is_byte(const Value* value) {
  return value->type.dtype == DType::u8 || value->type.dtype == DType::i8;
}
const Tensor* constant(const Node& node, size_t i) {
  return node.has(i) ? node.in[i]->constant() : nullptr;
}

/// One constant f32 scale and at most one constant zero point.
bool per_tensor(const Node& node) {
  const Tensor *scale = constant(node, 1), *zero = constant(node, 2);
  return scale && scale->dtype() == DType::f32 && scale->elements() == 1 &&
         (!node.has(2) || (zero && zero->elements() == 1));
}

/// The DequantizeLinear that makes a value out of bytes with one scale, or nullptr.
Node* dequantised(const Value* value) {
  Node* node = producer_as<DequantizeLinear>(value);
  if (!node || !per_tensor(*node) || !is_byte(node->in[0])) return nullptr;
  return node->outs[0]->type.dtype == DType::f32 ? node : nullptr;
}

Value* zero_point(Graph& graph, const Node& node, const Value* like) {
  if (node.has(2)) return node.in[2];
  Tensor zero(like->type.dtype, Shape{});
  *zero.storage<uint8_t>() = 0;
  return graph.add_constant(std::move(zero));
}

/// Constant weights behind a DequantizeLinear, with scales for all or along `axis`.
Node* weights(const Value* value, int64_t axis) {
  Node* node = producer_as<DequantizeLinear>(value);
  if (!node || !is_byte(node->in[0]) || !constant(*node, 0) || !constant(*node, 1)) return nullptr;
  if (constant(*node, 1)->dtype() != DType::f32 || (node->has(2) && !constant(*node, 2)))
    return nullptr;
  const auto& attrs = *node->as<DequantizeLinear>();
  if (attrs.block_size != 0) return nullptr;
  const auto rank = static_cast<int64_t>(constant(*node, 0)->rank());
  const int64_t own = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  if (constant(*node, 1)->elements() != 1 && own != axis) return nullptr;
  return node;
}

/// A bias as i32 in units of x_scale * w_scale; nothing when it is no constant or too large.
std::optional<Tensor> integer_bias(const Value* value, const Node& x, const Node& w,
                                   int64_t channels) {
  std::vector<double> real;
  if (const Tensor* given = value->constant()) {
    for (int64_t i = 0; i < given->elements(); ++i) real.push_back(given->to_double(i));
  } else {
    const Node* node = producer_as<DequantizeLinear>(value);
    if (!node || !constant(*node, 0) || !constant(*node, 1) ||
        (node->has(2) && !constant(*node, 2)))
      return {};
    const Tensor &whole = *constant(*node, 0), &scale = *constant(*node, 1);
    for (int64_t i = 0; i < whole.elements(); ++i) {
      const double zero =
          node->has(2) && constant(*node, 2)->elements() > 0
              ? constant(*node, 2)->to_double(constant(*node, 2)->elements() == 1 ? 0 : i)
              : 0;
      real.push_back((whole.to_double(i) - zero) * scale.to_double(scale.elements() == 1 ? 0 : i));
    }
  }
  if (std::ssize(real) != channels) return {};
  Tensor out(DType::i32, Shape{channels});
  const Tensor& scales = *constant(w, 1);
  for (int64_t m = 0; m < channels; ++m) {
    const double unit =
        constant(x, 1)->to_double() * scales.to_double(scales.elements() == 1 ? 0 : m);
    const double units = std::nearbyint(real[static_cast<size_t>(m)] / unit);
    if (!(std::fabs(units) < (1 << 30))) return {};
    out.data<int32_t>()[static_cast<size_t>(m)] = static_cast<int32_t>(units);
  }
  return out;
}

/// A Relu or Clip in front of a quantisation that saturates at the same bounds anyway.
bool implied(const Node& limit, const Node& quantise) {
  const bool byte = quantise.outs[0]->type.dtype == DType::i8;
  const double scale = constant(quantise, 1)->to_double();
  const double zero = quantise.has(2) ? constant(quantise, 2)->to_double() : 0;
  const double low = ((byte ? -128 : 0) - zero) * scale;
  const double high = ((byte ? 127 : 255) - zero) * scale;
  const double slack = scale / 4;  // bounds that round to the same step
  if (limit.as<Relu>()) return low >= -slack;
  for (size_t i = 1; i < limit.in.size(); ++i)
    if (limit.has(i) && (!constant(limit, i) || constant(limit, i)->elements() != 1)) return false;
  return (!limit.has(1) || constant(limit, 1)->to_double() <= low + slack) &&
         (!limit.has(2) || constant(limit, 2)->to_double() >= high - slack);
}

bool is_limit(const Node* node) { return node && (node->as<Relu>() || node->as<Clip>()); }

Value* supported(Graph& graph, Node& made, const Target& target) {
  if (target.has_kernel(made)) return made.outs[0];
  graph.erase(made);
  return nullptr;
}

Value* quantised_conv(Graph& graph, Node& conv, const Node& quantise, const Target& target) {
  Node *x = dequantised(conv.in[0]), *w = weights(conv.in[1], 0);
  if (!x || !w) return nullptr;
  const Tensor& values = *constant(*w, 0);
  if (values.rank() < 3) return nullptr;
  std::optional<Tensor> bias;
  if (conv.has(2)) {
    bias = integer_bias(conv.in[2], *x, *w, values.shape()[0]);
    if (!bias) return nullptr;
  }
  const Conv& attrs = *conv.as<Conv>();
  const QLinearConv made{.auto_pad = attrs.auto_pad,
                         .dilations = attrs.dilations,
                         .kernel_shape = attrs.kernel_shape,
                         .pads = attrs.pads,
                         .strides = attrs.strides,
                         .group = attrs.group,
                         .channels_last = attrs.channels_last};
  Values in{x->in[0],
            x->in[1],
            zero_point(graph, *x, x->in[0]),
            w->in[0],
            w->in[1],
            zero_point(graph, *w, w->in[0]),
            quantise.in[1],
            zero_point(graph, quantise, quantise.outs[0])};
  if (bias) in.push_back(graph.add_constant(std::move(*bias)));
  return supported(graph, graph.add_node(made, std::move(in), 1, conv.name), target);
}

Value* quantised_product(Graph& graph, Node& product, const Node& quantise, const Target& target) {
  Node* a = dequantised(product.in[0]);
  const auto& shape = product.in[1]->type.shape;
  if (!a || !shape || shape->size() < 2) return nullptr;
  Node* b = weights(product.in[1], std::ssize(*shape) - 1);
  if (!b) b = dequantised(product.in[1]);
  if (!b) return nullptr;
  return supported(graph,
                   graph.add_node(QLinearMatMul{},
                                  {a->in[0], a->in[1], zero_point(graph, *a, a->in[0]), b->in[0],
                                   b->in[1], zero_point(graph, *b, b->in[0]), quantise.in[1],
                                   zero_point(graph, quantise, quantise.outs[0])},
                                  1, product.name),
                   target);
}

Value* quantised_gemm(Graph& graph, Node& product, const Node* quantise, const Target& target) {
  const Gemm& attrs = *product.as<Gemm>();
  Node* a = dequantised(product.in[0]);
  Node* b = weights(product.in[1], attrs.trans_b ? 0 : 1);
  if (!a || !b || attrs.alpha != 1 || (product.has(2) && attrs.beta != 1)) return nullptr;
  const int64_t columns = constant(*b, 0)->shape()[attrs.trans_b ? 0 : 1];
  Values in{a->in[0], a->in[1], zero_point(graph, *a, a->in[0]),
            b->in[0], b->in[1], zero_point(graph, *b, b->in[0]),
            nullptr};
  if (product.has(2)) {
    auto bias = integer_bias(product.in[2], *a, *b, columns);
    if (!bias) return nullptr;
    in[6] = graph.add_constant(std::move(*bias));
  }
  if (quantise) {
    in.push_back(quantise->in[1]);
    in.push_back(zero_point(graph, *quantise, quantise->outs[0]));
  }
  const QGemm made{.trans_a = attrs.trans_a, .trans_b = attrs.trans_b};
  return supported(graph, graph.add_node(made, std::move(in), 1, product.name), target);
}

/// A heavy operator between dequantisation and this quantisation.
Values quantised(Graph& graph, Node& node, const Target& target) {
  if (!node.as<QuantizeLinear>() || !per_tensor(node) || !is_byte(node.outs[0])) return {};
  Node* limit = is_limit(node.in[0]->producer()) ? node.in[0]->producer() : nullptr;
  if (limit && !used_once(graph, limit->outs[0])) limit = nullptr;
  const Value* value = limit ? limit->in[0] : node.in[0];
  Node* heavy = value->producer();
  if (!heavy || !used_once(graph, value)) return {};
  Value* made = nullptr;
  if (heavy->as<Conv>())
    made = quantised_conv(graph, *heavy, node, target);
  else if (heavy->as<MatMul>())
    made = quantised_product(graph, *heavy, node, target);
  else if (heavy->as<Gemm>())
    made = quantised_gemm(graph, *heavy, &node, target);
  if (!made) return {};
  if (!limit || implied(*limit, node)) return {made};
  Value* zero = zero_point(graph, node, node.outs[0]);
  Value* real = graph.add(DequantizeLinear{}, {made, node.in[1], zero});
  Values in = limit->in;
  in[0] = real;
  Node& copy = graph.add_node(*limit->op, limit->attrs, std::move(in), 1, limit->name);
  return {graph.add(*node.as<QuantizeLinear>(), {copy.outs[0], node.in[1], zero})};
}

/// Products of dequantised operands that stay float.
Values float_product(Graph& graph, Node& node, const Target& target) {
  const bool product = node.as<MatMul>() != nullptr;
  if (!product && !node.as<Gemm>()) return {};
  // With a quantisation behind it, the rule above had its chance; Relu or Clip may lie between.
  for (const Use& use : node.outs[0]->users())
    if (use.node->as<QuantizeLinear>() || is_limit(use.node)) return {};
  if (!product) {
    Value* made = quantised_gemm(graph, node, nullptr, target);
    return made ? Values{made} : Values{};
  }
  Node* a = dequantised(node.in[0]);
  const auto& shape = node.in[1]->type.shape;
  if (!a || !shape || shape->size() != 2) return {};
  Node* b = weights(node.in[1], 1);
  if (!b) return {};
  Value* made =
      supported(graph,
                graph.add_node(MatMulIntegerToFloat{},
                               {a->in[0], b->in[0], a->in[1], b->in[1],
                                zero_point(graph, *a, a->in[0]), zero_point(graph, *b, b->in[0])},
                               1, node.name),
                target);
  return made ? Values{made} : Values{};
}

/// The DequantizeLinear that makes a value out of 8-bit floats with one scale and no zero point, or
/// nullptr.
Node* widened(const Value* value) {
  Node* node = producer_as<DequantizeLinear>(value);
  if (!node || !per_tensor(*node) || node->outs[0]->type.dtype != DType::f32) return nullptr;
  const DType code = node->in[0]->type.dtype;
  if (code != DType::f8e4m3fn && code != DType::f8e5m2) return nullptr;
  return !node->has(2) || constant(*node, 2)->to_double() == 0 ? node : nullptr;
}

/// Products of dequantised 8-bit floats, where they multiply as they are.
Values float8_product(Graph& graph, Node& node, const Target& target) {
  if (!node.as<MatMul>()) return {};
  Node *a = widened(node.in[0]), *b = widened(node.in[1]);
  if (!a || !b) return {};
  Value* made = supported(graph,
                          graph.add_node(MatMulIntegerToFloat{},
                                         {a->in[0], b->in[0], a->in[1], b->in[1]}, 1, node.name),
                          target);
  return made ? Values{made} : Values{};
}

bool moves_elements(const Node& node) {
  if (const auto* pool = node.as<MaxPool>()) return node.outs.size() == 1 && !pool->channels_last;
  return node.as<Reshape>() || node.as<Transpose>() || node.as<Squeeze>() || node.as<Unsqueeze>() ||
         node.as<Slice>() || node.as<DepthToSpace>() || node.as<Identity>();
}

/// op(dequantise(x)) = dequantise(op(x)).
Values dequantise_later(Graph& graph, Node& node) {
  if (!moves_elements(node) || node.outs.size() != 1) return {};
  Node* source = dequantised(node.in[0]);
  if (!source) return {};
  Values in = node.in;
  in[0] = source->in[0];
  Node& moved = graph.add_node(*node.op, node.attrs, std::move(in), 1, node.name);
  return {graph.add(*source->as<DequantizeLinear>(),
                    {moved.outs[0], source->in[1], source->has(2) ? source->in[2] : nullptr})};
}

/// quantise(dequantise(x)) = x with the same scale and zero point.
Values quantised_again(Graph& graph, Node& node) {
  if (!node.as<QuantizeLinear>() || !per_tensor(node)) return {};
  Node* source = dequantised(node.in[0]);
  if (!source || source->in[0]->type.dtype != node.outs[0]->type.dtype) return {};
  if (!constant(*source, 1)->identical(*constant(node, 1)) &&
      constant(*source, 1)->to_double() != constant(node, 1)->to_double())
    return {};
  const auto zero = [](const Node& of) { return of.has(2) ? constant(of, 2)->to_double() : 0; };
  if (zero(*source) != zero(node) || graph.is_output(node.outs[0])) return {};
  return {source->in[0]};
}

bool is_number(const Value* value) {
  const auto shape = value->type.is_tensor() ? value->type.static_shape() : std::nullopt;
  return value->type.dtype == DType::f32 && shape && shape->elements() == 1 && shape->rank() <= 1;
}

/// cast(integer product) * scale, as dynamic quantisation writes it.
Values scaled_product(Graph& graph, Node& node, const Target& target) {
  if (!node.as<Mul>()) return {};
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Node* cast = producer_as<Cast>(node.in[side]);
    if (!cast || cast->outs[0]->type.dtype != DType::f32 || !used_once(graph, cast->outs[0]))
      continue;
    Node* product = producer_as<MatMulInteger>(cast->in[0]);
    Value* scale = node.in[1 - side];
    if (!product || !used_once(graph, cast->in[0])) continue;
    Value *a_scale = scale, *b_scale = nullptr;
    if (Node* both = producer_as<Mul>(scale)) {
      const size_t fixed = both->in[0]->constant() ? 0 : 1;
      a_scale = both->in[1 - fixed];
      b_scale = both->in[fixed];
      const auto& shape = b_scale->type.shape;
      if (b_scale->type.dtype != DType::f32 || !shape || shape->size() > 1) continue;
    }
    if (!is_number(a_scale)) continue;
    if (!b_scale) b_scale = graph.add_constant(Tensor::scalar(1.0F));
    const auto given = [&](size_t i) { return product->has(i) ? product->in[i] : nullptr; };
    Value* made = supported(
        graph,
        graph.add_node(MatMulIntegerToFloat{},
                       {product->in[0], product->in[1], a_scale, b_scale, given(2), given(3)}, 1,
                       node.name),
        target);
    if (!made || !(made->type == node.outs[0]->type)) {
      if (made) graph.erase(*made->producer());
      continue;
    }
    return {made};
  }
  return {};
}

/// A constant added to every row becomes the bias of the product; of 8-bit floats it does not, as
/// libraries multiply them without.
Values product_bias(Graph& graph, Node& node, const Target& target) {
  if (!node.as<Add>()) return {};
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Node* product = producer_as<MatMulIntegerToFloat>(node.in[side]);
    const Tensor* bias = constant(node, 1 - side);
    if (!product || product->has(6) || !bias || bias->rank() != 1) continue;
    if (is_float(product->in[0]->type.dtype)) continue;
    if (!used_once(graph, product->outs[0]) || !product->in[1]->type.ranked()) continue;
    if (!product->in[1]->type.shape->back().is(bias->elements())) continue;
    Values in = product->in;
    in.resize(7, nullptr);
    in[6] = node.in[1 - side];
    Value* made = supported(
        graph, graph.add_node(MatMulIntegerToFloat{}, std::move(in), 1, node.name), target);
    if (made) return {made};
  }
  return {};
}

constexpr Rule kRules[] = {
    {"dequantise_later", dequantise_later, nullptr},
    {"quantised_again", quantised_again, nullptr},
    {"quantised", nullptr, quantised},
    {"float_product", nullptr, float_product},
    {"float8_product", nullptr, float8_product},
    {"scaled_product", nullptr, scaled_product},
    {"product_bias", nullptr, product_bias},
};

}  // namespace

bool quantise_linear(Graph& graph, const Target& target) { return rewrite(graph, kRules, &target); }

}  // namespace dais
