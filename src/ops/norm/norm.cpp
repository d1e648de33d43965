#include "ops/norm/norm.h"

#include <cmath>
#include <numeric>

#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elementwise.h"
#include "ops/norm/contrib.h"
#include "ops/norm/moments.h"
#include "ops/norm/norm_gradient.h"
#include "ops/parts.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/transpose/transpose.h"
#include "ops/wide.h"
#include "ops/window.h"

namespace dais {
namespace {

void infer_batch(Inference& c) {
  const auto& attrs = c.attrs<BatchNormalization>();
  c.set(0, c.dtype(0));
  c.require(c.outputs() <= 3 || attrs.training_mode, "the batch's moments are for training");
  for (size_t i : {1, 2, 3, 4}) {
    const size_t like = i % 2 == 1 ? 3 : 4;
    c.set(i, c.dtype(like));
    if (c.ranked(like)) c.set(i, c.dtype(like), c.shape(like));
  }
  const Dims& x = c.shape(0);
  c.require(x.size() >= 2, "X must have a batch and a channel axis");
  const Dim& channels = x[channel_axis(x.size(), attrs.channels_last)];
  for (size_t i = 1; i < 5; ++i) {
    if (!c.ranked(i)) continue;
    const Dims& given = c.shape(i);
    if (given.size() != 1 ||
        (given[0].is_constant() && channels.is_constant() && !(given[0] == channels)))
      c.fail("input " + std::to_string(i) + " is " + dims_text(given) + ", but X has " +
             channels.text() + " channels");
  }
  c.set(0, c.dtype(0), x);
}

/// Mean and variance of each channel over batch and space.
void batch_moments(const Activation& sizes, const std::vector<double>& x, std::vector<double>& mean,
                   std::vector<double>& variance) {
  const int64_t cells = sizes.cells();
  const auto count = static_cast<double>(sizes.batch * cells);
  for (int64_t channel = 0; channel < sizes.channels; ++channel) {
    double sum = 0, squares = 0;
    const auto each = [&](auto&& body) {
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const double* from = x.data() + (n * sizes.channels + channel) * cells;
        for (int64_t i = 0; i < cells; ++i) body(from[i]);
      }
    };
    each([&](double value) { sum += value; });
    const double middle = sum / count;
    each([&](double value) { squares += (value - middle) * (value - middle); });
    mean[static_cast<size_t>(channel)] = middle;
    variance[static_cast<size_t>(channel)] = squares / count;
  }
}

void reference_batch(Call& c) {
  const auto& attrs = c.attrs<BatchNormalization>();
  const Tensor& x = c.in(0);
  c.require(x.rank() >= 2, "X must have a batch and a channel axis");
  const Activation sizes(x.shape(), attrs.channels_last);
  for (size_t i = 1; i < 5; ++i)
    c.require(c.in(i).elements() == sizes.channels,
              "scale, B, mean and var must have one value per channel");
  const WideView<double> scale(c.in(1)), bias(c.in(2));
  std::vector<double> mean = to_wide<double>(c.in(3)), variance = to_wide<double>(c.in(4));
  std::vector<double> values = load_channels_first<double>(x, attrs.channels_last);
  Tensor& y = c.out(0, x.shape());
  if (attrs.training_mode) {
    std::vector<double> own_mean = mean, own_variance = variance;
    batch_moments(sizes, values, own_mean, own_variance);
    const auto keep = static_cast<double>(attrs.momentum);
    const auto emit = [&](size_t i, std::vector<double>& running, const std::vector<double>& own) {
      for (size_t k = 0; k < running.size(); ++k)
        running[k] = running[k] * keep + own[k] * (1 - keep);
      if (i < c.outputs())
        store_wide(c.out(i, c.in(i + 2).shape()), 0, running.data(), std::ssize(running));
    };
    emit(1, mean, own_mean);
    emit(2, variance, own_variance);
    mean = own_mean;
    variance = own_variance;
    if (c.outputs() > 3) store_wide(c.out(3, c.in(3).shape()), 0, mean.data(), std::ssize(mean));
    for (double& value : own_variance)
      value = 1 / std::sqrt(value + static_cast<double>(attrs.epsilon));
    if (c.outputs() > 4)
      store_wide(c.out(4, c.in(4).shape()), 0, own_variance.data(), std::ssize(own_variance));
  }
  const int64_t cells = sizes.cells();
  for (int64_t row = 0; row < sizes.batch * sizes.channels; ++row) {
    const int64_t channel = row % sizes.channels;
    const auto at = static_cast<size_t>(channel);
    const double factor =
        scale[channel] / std::sqrt(variance[at] + static_cast<double>(attrs.epsilon));
    double* line = values.data() + row * cells;
    for (int64_t i = 0; i < cells; ++i) line[i] = (line[i] - mean[at]) * factor + bias[channel];
  }
  store_channels_first(y, std::move(values), attrs.channels_last);
}

/// Versions 1 to 9 had five outputs while training (the last two were never defined well enough to
/// be used) and told training by their presence. Up to version 8, spatial=0 meant statistics for
/// each element: the same as taking every element for a channel.
Values import_old_batch(OnnxImport& c) {
  auto attrs = c.attrs<BatchNormalization>();
  attrs.training_mode = c.outputs > 1;
  const size_t count = std::min<size_t>(c.outputs, 3);
  const bool per_element = c.integer("spatial", 1) == 0;
  const auto shaped_like = [&](Value* x, Value* like) {
    return c.graph.add(Reshape{.allowzero = true}, {x, c.graph.add(ShapeOf{}, {like})});
  };
  Values in = c.in;
  if (per_element) {
    const std::array<int64_t, 1> all{-1};
    in = {c.graph.add(Flatten{}, {c.input(0)})};
    for (size_t i = 1; i < 5; ++i) in.push_back(c.graph.add(Reshape{}, {c.input(i), c.ints(all)}));
  }
  Values out = c.emit(attrs, in, count);
  for (size_t i = 0; i < count && per_element; ++i)
    out[i] = shaped_like(out[i], c.input(i == 0 ? 0 : i + 2));
  out.resize(c.outputs, nullptr);
  return out;
}

/// Before opset 14 only inference had a lasting form: training was told by outputs that are gone.
OnnxNode export_old_batch(const Node& node, int64_t opset) {
  if (node.as<BatchNormalization>()->training_mode)
    no_form(node, "batch normalisation while training", opset, 14);
  return export_plainly(node, opset);
}

void infer_same(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void infer_instance(Inference& c) {
  infer_same(c);
  c.require(c.rank(0) >= 3, "X must have at least one spatial axis");
}

/// Normalises rows of neighbouring elements, then scales by channel.
void normalize_groups(Call& c, const Activation& sizes, int64_t groups, double epsilon,
                      bool channels_last) {
  const Tensor& x = c.in(0);
  c.require(groups >= 1 && sizes.channels % groups == 0,
            "num_groups does not divide the number of channels");
  c.require(c.in(1).elements() == sizes.channels && c.in(2).elements() == sizes.channels,
            "scale and bias must have one value per channel");
  const WideView<double> scale(c.in(1)), bias(c.in(2));
  std::vector<double> values = load_channels_first<double>(x, channels_last);
  const int64_t cells = sizes.cells(), row = sizes.channels / groups * cells;
  for (int64_t first = 0; row > 0 && first < std::ssize(values); first += row) {
    double* line = values.data() + first;
    const Moments moments = moments_of(line, row);
    const double factor = 1 / std::sqrt(moments.variance + epsilon);
    for (int64_t i = 0; i < row; ++i) {
      const int64_t k = (first + i) / cells % sizes.channels;
      line[i] = (line[i] - moments.mean) * factor * scale[k] + bias[k];
    }
  }
  store_channels_first(c.out(0, x.shape()), std::move(values), channels_last);
}

void reference_instance(Call& c) {
  c.require(c.in(0).rank() >= 3, "X must have at least one spatial axis");
  const Activation sizes(c.in(0).shape(), false);
  normalize_groups(c, sizes, sizes.channels,
                   static_cast<double>(c.attrs<InstanceNormalization>().epsilon), false);
}

/// Version 1 has consumed_inputs, which asks for nothing.
Values import_old_instance(OnnxImport& c) { return c.emit(c.attrs<InstanceNormalization>(), c.in); }

void infer_group(Inference& c) {
  infer_same(c);
  c.require(c.rank(0) >= 2, "X must have a batch and a channel axis");
  c.require(c.attrs<GroupNormalization>().num_groups >= 1, "num_groups must be positive");
}

/// Version 18 scaled by group.
Values import_group_18(OnnxImport& c) {
  const auto attrs = c.attrs<GroupNormalization>();
  const std::array<int64_t, 2> column{-1, 1};
  const std::array<int64_t, 1> all{-1}, groups{attrs.num_groups};
  Value* channels = c.graph.add(ShapeOf{.start = 1, .end = 2}, {c.input(0)});
  Value* per_group = c.graph.add(Div{}, {channels, c.ints(groups)});
  const auto by_channel = [&](Value* value) {
    Value* tall = c.graph.add(Reshape{}, {value, c.ints(column)});
    return c.graph.add(Reshape{}, {c.graph.add(Expand{}, {tall, per_group}), c.ints(all)});
  };
  return c.emit(attrs, {c.input(0), by_channel(c.input(1)), by_channel(c.input(2))});
}

/// Rows of whole groups by their moments, in f32 at least; then scale and bias by channel.
Values decompose_group(Graph& graph, const Node& node) {
  const auto& attrs = *node.as<GroupNormalization>();
  Value* x = node.in[0];
  if (!x->type.shape) return {};
  const DType dtype = wide_type(*x);
  const size_t rank = x->type.shape->size();
  const auto turned = [&](Value* value, size_t from, size_t to) {
    if (!attrs.channels_last) return value;
    std::vector<int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(from));
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
    return graph.add(Transpose{.perm = perm}, {value});
  };
  x = turned(x, rank - 1, 1);
  const auto ints = [&](std::vector<int64_t> values) {
    return graph.add_constant(Tensor::ints(values));
  };
  std::vector<int64_t> by_channel(rank - 1, 1);
  by_channel[0] = -1;
  const auto parameter = [&](size_t i) {
    return as_type(graph, graph.add(Reshape{}, {node.in[i], ints(by_channel)}), dtype);
  };
  Value* rows = graph.add(Reshape{}, {as_type(graph, x, dtype), ints({0, attrs.num_groups, -1})});
  Value* centred = graph.add(Sub{}, {rows, graph.add(ReduceMean{}, {rows, ints({2})})});
  Value* squares = graph.add(Mul{}, {centred, centred});
  Value* variance = graph.add(ReduceMean{}, {squares, ints({2})});
  Value* epsilon = add_scalar(graph, static_cast<double>(attrs.epsilon), dtype);
  Value* root = graph.add(Sqrt{}, {graph.add(Add{}, {variance, epsilon})});
  Value* normal = graph.add(Div{}, {centred, root});
  Value* shaped = graph.add(Reshape{}, {normal, graph.add(ShapeOf{}, {x})});
  Value* scaled = graph.add(Mul{}, {shaped, parameter(1)});
  Value* y = as_type(graph, graph.add(Add{}, {scaled, parameter(2)}), x->type.dtype);
  return {turned(y, 1, rank - 1)};
}

void reference_group(Call& c) {
  const auto& attrs = c.attrs<GroupNormalization>();
  c.require(c.in(0).rank() >= 2, "X must have a batch and a channel axis");
  normalize_groups(c, Activation(c.in(0).shape(), attrs.channels_last), attrs.num_groups,
                   static_cast<double>(attrs.epsilon), attrs.channels_last);
}

}  // namespace

Moments moments_of(const double* values, int64_t count) {
  Moments out;
  if (count == 0) return out;
  for (int64_t i = 0; i < count; ++i) out.mean += values[i];
  out.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i)
    out.variance += (values[i] - out.mean) * (values[i] - out.mean);
  out.variance /= static_cast<double>(count);
  return out;
}

const Op BatchNormalization::op{
    .name = "batch_normalization",
    .attrs = &AttrsOf<BatchNormalization>::info,
    .infer = infer_batch,
    .reference = reference_batch,
    .gradient = gradient_batch_norm,
    .onnx = {{"BatchNormalization", 14},
             {.type = "BatchNormalization",
              .until = 13,
              .import = import_old_batch,
              .export_as = export_old_batch}},
};
const Op InstanceNormalization::op{
    .name = "instance_normalization",
    .attrs = &AttrsOf<InstanceNormalization>::info,
    .infer = infer_instance,
    .reference = reference_instance,
    .decompose = decompose_instance_norm,
    .onnx = {{"InstanceNormalization", 6},
             {.type = "InstanceNormalization", .until = 5, .import = import_old_instance}},
};
const Op GroupNormalization::op{
    .name = "group_normalization",
    .attrs = &AttrsOf<GroupNormalization>::info,
    .infer = infer_group,
    .reference = reference_group,
    .decompose = decompose_group,
    .onnx = {{.type = "GroupNormalization", .since = 18, .until = 20, .import = import_group_18},
             {"GroupNormalization", 21}},
};

namespace ops {
void define_norm(OpRegistry& registry) {
  for (const Op* op :
       {&BatchNormalization::op, &BatchNormalizationBackward::op, &InstanceNormalization::op,
        &GroupNormalization::op, &LayerNormalization::op, &LayerNormalizationBackward::op,
        &RMSNormalization::op, &RMSNormalizationBackward::op, &LpNormalization::op,
        &MeanVarianceNormalization::op})
    registry.add(*op);
  define_norm_contrib(registry);
}
}  // namespace ops
}  // namespace dais
