// Gradients of normalisations: with x^ = (x - mean) * inverse and d = dy * scale,
//   dx = inverse * (d - mean(d) - x^ * mean(d * x^)),
// where the means go over what is normalised together.
#include "ops/norm/norm_gradient.h"

#include <numeric>

#include "ir/inference.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/wide.h"
#include "ops/window.h"

namespace dais {
namespace {

void infer_batch(Inference& c) {
  c.set(0, c.dtype(1));
  for (size_t i : {1, 2}) {
    c.set(i, c.dtype(2));
    if (c.ranked(2)) c.set(i, c.dtype(2), c.shape(2));
  }
  c.set(0, c.dtype(1), c.shape(1));
}

void reference_batch(Call& c) {
  const Tensor &dy = c.in(0), &x = c.in(1);
  const bool last = c.attrs<BatchNormalizationBackward>().channels_last;
  c.require(x.rank() >= 2 && dy.shape() == x.shape(), "dy and X must have the same shape");
  const Activation sizes(x.shape(), last);
  for (size_t i = 2; i < 5; ++i)
    c.require(c.in(i).elements() == sizes.channels, "there must be one value per channel");
  const WideView<double> scale(c.in(2)), mean(c.in(3)), inverse(c.in(4));
  auto slopes = load_channels_first<double>(dy, last);
  auto values = load_channels_first<double>(x, last);
  const int64_t cells = sizes.cells();
  const auto count = static_cast<double>(sizes.batch * cells);
  std::vector<double> sums(static_cast<size_t>(sizes.channels)), products = sums;
  const auto each = [&](auto&& body) {
    for (int64_t row = 0; row < sizes.batch * sizes.channels; ++row)
      for (int64_t i = row * cells; i < (row + 1) * cells; ++i)
        body(row % sizes.channels, slopes[static_cast<size_t>(i)], values[static_cast<size_t>(i)]);
  };
  each([&](int64_t channel, double slope, double& value) {
    value = (value - mean[channel]) * inverse[channel];
    sums[static_cast<size_t>(channel)] += slope;
    products[static_cast<size_t>(channel)] += slope * value;
  });
  each([&](int64_t channel, double slope, double& value) {
    const auto at = static_cast<size_t>(channel);
    value = scale[channel] * inverse[channel] *
            (slope - sums[at] / count - value * products[at] / count);
  });
  store_channels_first(c.out(0, x.shape()), std::move(values), last);
  const Shape& shape = c.in(2).shape();
  if (c.outputs() > 1) store_wide(c.out(1, shape), 0, products.data(), std::ssize(products));
  if (c.outputs() > 2) store_wide(c.out(2, shape), 0, sums.data(), std::ssize(sums));
}

/// A value per channel in a form that broadcasts to an activation.
Term per_channel(Graph& g, Value* value, size_t rank, bool channels_last) {
  if (channels_last || rank == 2) return {g, value};
  std::vector<int64_t> axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 1);
  return {g, g.add(Unsqueeze{}, {value, ints(g, axes)})};
}

/// By given moments: a linear function of x.
Values gradient_fixed_batch(Graph& g, const Node& n, Value* given) {
  const auto& attrs = *n.as<BatchNormalization>();
  const size_t rank = rank_for_gradient(n, n.in[0]);
  const bool last = attrs.channels_last;
  const auto each = [&](Value* value) { return per_channel(g, value, rank, last); };
  const auto total = [&](Value* value) { return Term(g, sum_to_channels(g, value, last)); };
  const Term x(g, n.in[0]), scale(g, n.in[1]), mean(g, n.in[3]), variance(g, n.in[4]);
  const Term dy(g, given);
  const Term inverse = 1.0 / apply<Sqrt>(variance + static_cast<double>(attrs.epsilon));
  const Term factor = scale * inverse;
  const Term sum = total(dy), product = total(dy * (x - each(mean)));
  return {dy * each(factor), product * inverse, sum, -(sum * factor),
          product * scale * inverse * inverse * inverse * -0.5};
}

/// Axes from `axis` on.
std::vector<int64_t> row_axes(const Node& n, const Value* x, int64_t axis) {
  const auto rank = static_cast<int64_t>(rank_for_gradient(n, x));
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis + rank : axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

Term mean_over(const Term& x, const std::vector<int64_t>& axes) {
  Graph& g = *x.graph;
  return {g, g.add(ReduceMean{}, {x.value, ints(g, axes)})};
}

Term cast_like(Graph& g, Value* value, const Value* like) {
  if (value->type.dtype == like->type.dtype) return {g, value};
  return {g, g.add(Cast{.to = like->type.dtype}, {value})};
}

/// Outputs like X (input 1), and like Scale (input 2).
void infer_rows(Inference& c) {
  c.set(0, c.dtype(1));
  for (size_t i : {1, 2}) {
    c.set(i, c.dtype(2));
    if (c.ranked(2)) c.set(i, c.dtype(2), c.shape(2));
  }
  c.set(0, c.dtype(1), c.shape(1));
}

Values decompose_layer(Graph& g, const Node& n) {
  const Term dy(g, n.in[0]), x(g, n.in[1]), scale(g, n.in[2]);
  const Term mean = cast_like(g, n.in[3], x), inverse = cast_like(g, n.in[4], x);
  const auto axes = row_axes(n, x, n.as<LayerNormalizationBackward>()->axis);
  const Term normal = (x - mean) * inverse, d = dy * scale;
  const Term dx = (d - mean_over(d, axes) - normal * mean_over(d * normal, axes)) * inverse;
  return {dx, reduce_to(g, dy * normal, scale), reduce_to(g, dy, scale)};
}

Values decompose_rms(Graph& g, const Node& n) {
  const Term dy(g, n.in[0]), x(g, n.in[1]), scale(g, n.in[2]);
  const Term inverse = cast_like(g, n.in[3], x);
  const auto axes = row_axes(n, x, n.as<RMSNormalizationBackward>()->axis);
  const Term normal = x * inverse, d = dy * scale;
  const Term dx = (d - normal * mean_over(d * normal, axes)) * inverse;
  return {dx, reduce_to(g, dy * normal, scale)};
}

void only_first(const Node& n, std::span<Value* const> dy) {
  for (size_t i = 1; i < dy.size(); ++i)
    if (dy[i]) no_gradient(n, "its moments are not differentiated", "Use its first output only");
}

/// x without mean and deviation over the axes.
Term normalized(const Term& x, const std::vector<int64_t>& axes, double epsilon) {
  const Term centred = x - mean_over(x, axes);
  const Term variance = mean_over(centred * centred, axes);
  return centred / apply<Sqrt>(variance + epsilon);
}

}  // namespace

Values gradient_batch_norm(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<BatchNormalization>();
  // Running moments are a state, not a result.
  if (!dy[0]) return Values(n.in.size(), nullptr);
  if (!attrs.training_mode) return gradient_fixed_batch(g, n, dy[0]);
  need_outputs(g, n, 5);
  return g
      .add_node(BatchNormalizationBackward{.channels_last = attrs.channels_last},
                {dy[0], n.in[0], n.in[1], n.outs[3], n.outs[4]}, 3)
      .outs;
}

Values gradient_layer_norm(Graph& g, const Node& n, std::span<Value* const> dy) {
  only_first(n, dy);
  need_outputs(g, n, 3);
  Values out = g.add_node(LayerNormalizationBackward{.axis = n.as<LayerNormalization>()->axis},
                          {dy[0], n.in[0], n.in[1], n.outs[1], n.outs[2]}, 3)
                   .outs;
  out.resize(n.in.size());
  if (n.has(2) && !(n.in[2]->type == n.in[1]->type)) out[2] = reduce_to(g, dy[0], n.in[2]);
  return out;
}

Values gradient_rms_norm(Graph& g, const Node& n, std::span<Value* const> dy) {
  only_first(n, dy);
  need_outputs(g, n, 2);
  return g
      .add_node(RMSNormalizationBackward{.axis = n.as<RMSNormalization>()->axis},
                {dy[0], n.in[0], n.in[1], n.outs[1]}, 2)
      .outs;
}

/// y = x / norm; rows of zeros stay.
Values gradient_lp_norm(Graph& g, const Node& n, std::span<Value* const> given) {
  const auto& attrs = *n.as<LpNormalization>();
  const Term x(g, n.in[0]), y(g, n.outs[0]), dy(g, given[0]);
  const auto total = [&](const Term& value) {
    return Term(g, sum_over(g, value, {attrs.axis}, true));
  };
  const Term size = attrs.p == 1 ? total(apply<Abs>(x)) : apply<Sqrt>(total(x * x));
  const Term norm = where(size > 0, size, 1);
  const Term along = attrs.p == 1 ? apply<Sign>(x) : y;
  return {(dy - along * total(dy * y)) / norm};
}

/// y = (x - mean) / (deviation + tiny).
Values gradient_mean_variance(Graph& g, const Node& n, std::span<Value* const> given) {
  const auto& attrs = *n.as<MeanVarianceNormalization>();
  const Term x(g, n.in[0]), dy(g, given[0]);
  const Term flat = dy - mean_over(dy, attrs.axes);
  if (!attrs.normalize_variance) return {flat};
  const Term centred = x - mean_over(x, attrs.axes);
  const Term deviation = apply<Sqrt>(mean_over(centred * centred, attrs.axes));
  const Term divisor = deviation + 1e-9;
  const Term slope = mean_over(dy * centred, attrs.axes) / (deviation * divisor * divisor);
  return {flat / divisor - centred * slope};
}

Values decompose_instance_norm(Graph& g, const Node& n) {
  if (!n.in[0]->type.ranked()) return {};
  const size_t rank = n.in[0]->type.shape->size();
  std::vector<int64_t> axes(rank - 2);
  std::iota(axes.begin(), axes.end(), 2);
  const Term y =
      normalized({g, n.in[0]}, axes, static_cast<double>(n.as<InstanceNormalization>()->epsilon));
  return {y * per_channel(g, n.in[1], rank, false) + per_channel(g, n.in[2], rank, false)};
}

const Op BatchNormalizationBackward::op{
    .name = "batch_normalization_backward",
    .attrs = &AttrsOf<BatchNormalizationBackward>::info,
    .infer = infer_batch,
    .reference = reference_batch,
    .onnx = {{.type = "BatchNormalizationBackward", .domain = "dais"}},
};
const Op LayerNormalizationBackward::op{
    .name = "layer_normalization_backward",
    .attrs = &AttrsOf<LayerNormalizationBackward>::info,
    .infer = infer_rows,
    .decompose = decompose_layer,
    .onnx = {{.type = "LayerNormalizationBackward", .domain = "dais"}},
};
const Op RMSNormalizationBackward::op{
    .name = "rms_normalization_backward",
    .attrs = &AttrsOf<RMSNormalizationBackward>::info,
    .infer = infer_rows,
    .decompose = decompose_rms,
    .onnx = {{.type = "RMSNormalizationBackward", .domain = "dais"}},
};

}  // namespace dais
