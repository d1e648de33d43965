#include "ops/conv/conv.h"

#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/conv/contrib.h"
#include "ops/conv/conv_backward.h"
#include "ops/conv/conv_loop.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer_conv(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), conv_dims(c, c.attrs<Conv>(), c.shape(0), c.shape(1)));
}

void reference_conv(Call& c) {
  const auto& attrs = c.attrs<Conv>();
  const Tensor &x = c.in(0), &w = c.in(1);
  const ConvSizes sizes = conv_sizes(c, attrs, x.shape(), w.shape());
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  std::vector<double> sums;
  visit_wide(x.dtype(), [&]<typename T>() {
    const WideView<T> weights(w);
    if (attrs.channels_last) {
      sums = conv_loop(sizes, load_channels_first<T>(x, true).data(), weights.data());
    } else {
      const WideView<T> values(x);
      sums = conv_loop(sizes, values.data(), weights.data());
    }
  });
  add_channel_bias(c, sizes.y, sums);
  store_channels_first(y, std::move(sums), attrs.channels_last);
}

void infer_integer(Inference& c) {
  c.set(0, DType::i32);
  c.set(0, DType::i32, conv_dims(c, c.attrs<ConvInteger>(), c.shape(0), c.shape(1)));
}

void infer_qlinear(Inference& c) {
  c.set(0, c.dtype(7));
  c.set(0, c.dtype(7), conv_dims(c, c.attrs<QLinearConv>(), c.shape(0), c.shape(3)));
}

float one_value(const Call& c, size_t i) {
  if (c.in(i).elements() != 1) c.fail("input " + std::to_string(i) + " must be a scalar");
  return WideView<float>(c.in(i))[0];
}

/// One value per output channel, from one for all or one each.
std::vector<float> per_channel(const Call& c, const Tensor& tensor, int64_t channels) {
  std::vector<float> values = to_wide<float>(tensor);
  if (values.size() == 1) values.assign(static_cast<size_t>(channels), values[0]);
  c.require(std::ssize(values) == channels,
            "scales and zero points of the weights must be one value or one per output channel");
  return values;
}

template <typename S>
std::vector<double> integer_sums(const Call& c, const S& attrs, const ConvSizes& sizes,
                                 const Tensor& x, float x_zero, const Tensor& w,
                                 const Tensor* w_zero) {
  std::vector<float> values = load_channels_first<float>(x, attrs.channels_last);
  for (float& value : values) value -= x_zero;
  std::vector<float> weights = to_wide<float>(w);
  if (w_zero) {
    const auto zeros = per_channel(c, *w_zero, sizes.y.channels);
    const size_t each = weights.size() / std::max<size_t>(zeros.size(), 1);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= zeros[i / each];
  }
  return conv_loop(sizes, values.data(), weights.data());
}

void reference_integer(Call& c) {
  const auto& attrs = c.attrs<ConvInteger>();
  const ConvSizes sizes = conv_sizes(c, attrs, c.in(0).shape(), c.in(1).shape());
  const float x_zero = c.has(2) ? one_value(c, 2) : 0;
  auto sums =
      integer_sums(c, attrs, sizes, c.in(0), x_zero, c.in(1), c.has(3) ? &c.in(3) : nullptr);
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  // Through i64: sums beyond i32 wrap, as accumulators of that width do.
  std::vector<int64_t> whole(sums.begin(), sums.end());
  whole = in_layout(std::move(whole), sizes.y, attrs.channels_last);
  store_wide(y, 0, whole.data(), y.elements());
}

void reference_qlinear(Call& c) {
  const auto& attrs = c.attrs<QLinearConv>();
  const Tensor &x = c.in(0), &w = c.in(3);
  const ConvSizes sizes = conv_sizes(c, attrs, x.shape(), w.shape());
  const auto sums = integer_sums(c, attrs, sizes, x, one_value(c, 2), w, &c.in(5));
  const float x_scale = one_value(c, 1), y_scale = one_value(c, 6), y_zero = one_value(c, 7);
  const auto w_scale = per_channel(c, c.in(4), sizes.y.channels);
  std::vector<double> bias(static_cast<size_t>(sizes.y.channels), 0);
  if (c.has(8)) {
    c.require(c.in(8).elements() == sizes.y.channels, "B must have one value per output channel");
    bias = to_wide<double>(c.in(8));
  }
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  std::vector<float> out(sums.size());
  const int64_t cells = sizes.y.cells();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / cells % sizes.y.channels);
    const float scale = x_scale * w_scale[channel] / y_scale;
    out[i] = std::nearbyint(static_cast<float>(sums[i] + bias[channel]) * scale) + y_zero;
  }
  out = in_layout(std::move(out), sizes.y, attrs.channels_last);
  store_saturated(y, 0, out.data(), y.elements());
}

template <size_t weights>
Cost cost(const Node& node) {
  const auto& w = node.in[weights]->type.shape;
  const auto& y = node.outs[0]->type.shape;
  if (!w || !y || w->size() < 2) return {};
  const auto each = product(*w, 1, w->size()).constant();
  const auto outputs = product(*y, 0, y->size()).constant();
  if (!each || !outputs) return {};
  return {.flops = 2 * static_cast<double>(*each) * static_cast<double>(*outputs)};
}

}  // namespace

const Op Conv::op{
    .name = "conv",
    .attrs = &AttrsOf<Conv>::info,
    .infer = infer_conv,
    .reference = reference_conv,
    .gradient = gradient_conv,
    .cost = cost<1>,
    .onnx = {{"Conv"}},
};

const Op ConvInteger::op{
    .name = "conv_integer",
    .attrs = &AttrsOf<ConvInteger>::info,
    .infer = infer_integer,
    .reference = reference_integer,
    .cost = cost<1>,
    .onnx = {{"ConvInteger", 10}},
};

const Op QLinearConv::op{
    .name = "q_linear_conv",
    .attrs = &AttrsOf<QLinearConv>::info,
    .infer = infer_qlinear,
    .reference = reference_qlinear,
    .cost = cost<3>,
    .onnx = {{"QLinearConv", 10}, {.type = "QLinearConv", .domain = "com.microsoft"}},
};

namespace ops {
void define_conv(OpRegistry& registry) {
  for (const Op* op : {&Conv::op, &ConvBackwardData::op, &ConvBackwardWeights::op, &ConvInteger::op,
                       &QLinearConv::op, &CausalConvWithState::op})
    registry.add(*op);
  define_conv_contrib(registry);
}
}  // namespace ops
}  // namespace dais
