#include "ops/conv/conv_backward.h"

#include "ir/inference.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_loop.h"
#include "ops/gradient.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer_data(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(2)) return c.set(0, c.dtype(0), *sizes);
  const auto& attrs = c.attrs<ConvBackwardData>();
  const Dims &dy = c.shape(0), &w = c.shape(1);
  c.require(dy.size() >= 3 && w.size() == dy.size(), "dy and W must have the same rank");
  Dims space = space_of(dy, attrs.channels_last);
  for (Dim& size : space) size = c.fresh();
  c.set(0, c.dtype(0), activation_dims(dy[0], w[1] * Dim(attrs.group), space, attrs.channels_last));
}

void reference_data(Call& c) {
  const auto& attrs = c.attrs<ConvBackwardData>();
  const Tensor &dy = c.in(0), &w = c.in(1);
  const Shape shape(c.in(2).to_ints());
  const ConvSizes sizes = conv_sizes(c, attrs, shape, w.shape());
  c.require(dy.shape() == sizes.y.shape(attrs.channels_last), "dy is not of the output's shape");
  visit_wide(dy.dtype(), [&]<typename T>() {
    const auto slopes = load_channels_first<T>(dy, attrs.channels_last);
    const WideView<T> weights(w);
    store_channels_first(c.out(0, shape), conv_data_loop(sizes, slopes.data(), weights.data()),
                         attrs.channels_last);
  });
}

void infer_weights(Inference& c) {
  const auto& attrs = c.attrs<ConvBackwardWeights>();
  c.set(0, c.dtype(1));
  const Dims &x = c.shape(0), &dy = c.shape(1);
  c.require(x.size() >= 3 && dy.size() == x.size(), "X and dy must have the same rank");
  c.require(attrs.kernel_shape.size() + 2 == x.size(),
            "kernel_shape must have one entry for each spatial axis");
  c.require(attrs.group >= 1, "group must be positive");
  const size_t channel = channel_axis(x.size(), attrs.channels_last);
  Dims out{dy[channel], floordiv(x[channel], Dim(attrs.group))};
  out.insert(out.end(), attrs.kernel_shape.begin(), attrs.kernel_shape.end());
  c.set(0, c.dtype(1), out);
}

void reference_weights(Call& c) {
  const auto& attrs = c.attrs<ConvBackwardWeights>();
  const Tensor &x = c.in(0), &dy = c.in(1);
  c.require(x.rank() >= 3 && dy.rank() == x.rank(), "X and dy must have the same rank");
  c.require(attrs.group >= 1, "group must be positive");
  const size_t channel = channel_axis(x.rank(), attrs.channels_last);
  Shape shape{dy.shape()[channel], x.shape()[channel] / attrs.group};
  for (const int64_t size : attrs.kernel_shape) shape.push_back(size);
  const ConvSizes sizes = conv_sizes(c, attrs, x.shape(), shape);
  c.require(dy.shape() == sizes.y.shape(attrs.channels_last), "dy is not of the output's shape");
  visit_wide(x.dtype(), [&]<typename T>() {
    const auto values = load_channels_first<T>(x, attrs.channels_last);
    const auto slopes = load_channels_first<T>(dy, attrs.channels_last);
    const auto sums = conv_weights_loop(sizes, values.data(), slopes.data());
    store_wide(c.out(0, shape), 0, sums.data(), shape.elements());
  });
}

/// As many multiplications as forward: one for each weight and output element.
Cost cost_of(const Value* dy, const Dim& per_output) {
  if (!dy->type.shape) return {};
  const auto each = per_output.constant();
  const auto outputs = product(*dy->type.shape, 0, dy->type.shape->size()).constant();
  if (!each || !outputs) return {};
  return {.flops = 2 * static_cast<double>(*each) * static_cast<double>(*outputs)};
}
Cost cost_data(const Node& node) {
  const auto& w = node.in[1]->type.shape;
  return w ? cost_of(node.in[0], product(*w, 1, w->size())) : Cost{};
}
Cost cost_weights(const Node& node) {
  const auto& w = node.outs[0]->type.shape;
  return w ? cost_of(node.in[1], product(*w, 1, w->size())) : Cost{};
}

// Each of the three is linear in both operands, and their gradients are each other.
Values gradient_data(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<ConvBackwardData>();
  return {g.add(same_window<Conv>(attrs), {dy[0], n.in[1]}),
          g.add(same_window<ConvBackwardWeights>(attrs), {dy[0], n.in[0]})};
}
Values gradient_weights(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<ConvBackwardWeights>();
  return {
      g.add(same_window<ConvBackwardData>(attrs), {n.in[1], dy[0], sizes_of(g, n.in[0])}),
      g.add(same_window<Conv>(attrs), {n.in[0], dy[0]}),
  };
}

}  // namespace

Values gradient_conv(Graph& g, const Node& n, std::span<Value* const> dy) {
  Conv attrs = *n.as<Conv>();
  const size_t rank = rank_for_gradient(n, n.in[1]);
  attrs.kernel_shape.clear();
  for (size_t axis = 2; axis < rank; ++axis) {
    const Dim& size = (*n.in[1]->type.shape)[axis];
    if (!size.is_constant()) no_gradient(n, "the kernel's size is not known");
    attrs.kernel_shape.push_back(*size.constant());
  }
  Values out{g.add(same_window<ConvBackwardData>(attrs), {dy[0], n.in[1], sizes_of(g, n.in[0])}),
             g.add(same_window<ConvBackwardWeights>(attrs), {n.in[0], dy[0]})};
  if (n.has(2)) out.push_back(sum_to_channels(g, dy[0], attrs.channels_last));
  return out;
}

template <>
const Op ConvBackwardData::op{
    .name = "conv_backward_data",
    .attrs = &AttrsOf<ConvBackwardData>::info,
    .infer = infer_data,
    .reference = reference_data,
    .gradient = gradient_data,
    .cost = cost_data,
    .onnx = {{.type = "ConvBackwardData", .domain = "dais"}},
};
template <>
const Op ConvBackwardWeights::op{
    .name = "conv_backward_weights",
    .attrs = &AttrsOf<ConvBackwardWeights>::info,
    .infer = infer_weights,
    .reference = reference_weights,
    .gradient = gradient_weights,
    .cost = cost_weights,
    .onnx = {{.type = "ConvBackwardWeights", .domain = "dais"}},
};

}  // namespace dais
