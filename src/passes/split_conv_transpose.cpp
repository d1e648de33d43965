// A transposed convolution whose windows do not overlap is a 1x1 convolution to one channel per
// cell of the window, spread over the picture by DepthToSpace. Functions of single elements behind
// it go before the spreading, where the convolution takes them into its kernel.

#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/elementwise/elementwise.h"
#include "passes/passes.h"

namespace dais {
namespace {

bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

/// The side of the square window, when windows tile the result exactly; else 0.
int64_t tile_of(const ConvTranspose& attrs, const Shape& w) {
  if (w.rank() != 4 || w[2] != w[3] || w[2] < 2 || attrs.group != 1) return 0;
  if (attrs.strides != std::vector<int64_t>{w[2], w[3]}) return 0;
  const bool plain = all_are(attrs.pads, 0) && all_are(attrs.output_padding, 0) &&
                     all_are(attrs.dilations, 1) && attrs.output_shape.empty();
  const bool given = attrs.auto_pad == "NOTSET" || attrs.auto_pad == "VALID";
  return plain && given && !attrs.channels_last ? w[2] : 0;
}

/// Weights [C, M, side, side] as [side * side * M, C, 1, 1].
Tensor spread_weights(const Tensor& w) {
  const int64_t in = w.shape()[0], out = w.shape()[1], cells = w.shape().elements(2, 4);
  Tensor result(DType::f32, Shape{cells * out, in, 1, 1});
  const float* from = w.data<float>().data();
  float* to = result.data<float>().data();
  for (int64_t c = 0; c < in; ++c)
    for (int64_t m = 0; m < out; ++m)
      for (int64_t cell = 0; cell < cells; ++cell) to[(cell * out + m) * in + c] = *from++;
  return result;
}

Tensor repeated(const Tensor& bias, int64_t times) {
  Tensor out(DType::f32, Shape{bias.elements() * times});
  const auto values = bias.data<float>();
  for (int64_t i = 0; i < times; ++i)
    std::copy(values.begin(), values.end(), out.data<float>().begin() + i * std::ssize(values));
  return out;
}

const Tensor* f32_constant(const Node& node, size_t i) {
  const Tensor* tensor = node.has(i) ? node.in[i]->constant() : nullptr;
  return tensor && tensor->dtype() == DType::f32 ? tensor : nullptr;
}

Values split(Graph& graph, Node& node) {
  const auto* attrs = node.as<ConvTranspose>();
  const Tensor* w = attrs ? f32_constant(node, 1) : nullptr;
  if (!w || (node.has(2) && !f32_constant(node, 2))) return {};
  const int64_t side = tile_of(*attrs, w->shape());
  if (side == 0) return {};
  Values in{node.in[0], graph.add_constant(spread_weights(*w))};
  if (node.has(2)) in.push_back(graph.add_constant(repeated(*f32_constant(node, 2), side * side)));
  Value* channels = graph.add(Conv{}, std::move(in), node.name);
  return {graph.add(DepthToSpace{.blocksize = side}, {channels}, node.name)};
}

/// Whether the node is a function of each element of its first input alone.
bool of_single_elements(const Node& node) {
  if (!scalar_call(node) || node.in.empty()) return false;
  return std::all_of(node.in.begin() + 1, node.in.end(), [](const Value* value) {
    return !value || (value->constant() && value->constant()->elements() == 1 &&
                      value->constant()->rank() == 0);
  });
}

Values raise(Graph& graph, Node& node) {
  if (!of_single_elements(node) || node.outs.size() != 1) return {};
  Node* spread = producer_as<DepthToSpace>(node.in[0]);
  if (!spread || !used_once(graph, node.in[0]) || !producer_as<Conv>(spread->in[0])) return {};
  Values in = node.in;
  in[0] = spread->in[0];
  Value* inner = graph.add_node(*node.op, node.attrs, std::move(in), 1, node.name).outs[0];
  return {graph.add_node(*spread->op, spread->attrs, {inner}, 1, spread->name).outs[0]};
}

constexpr Rule kRules[] = {{"split", split}, {"raise", raise}};

}  // namespace

bool split_conv_transpose(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
