#include <algorithm>

#include "nn/body.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/pool/pool.h"
#include "ops/random/random.h"
#include "ops/reshape/reshape.h"
#include "ops/resize/resize.h"

namespace dais::nn {
namespace {

using Fans = NetworkBody::Fans;

void require(bool holds, const std::string& what, const NetworkBody& body) {
  if (!holds)
    throw Error(
        Code::invalid_argument, what,
        body.prefix.empty() ? "" : "scope '" + body.prefix.substr(0, body.prefix.size() - 1) + "'");
}

void require_width(int64_t width, const char* what, const NetworkBody& body) {
  require(width > 0, std::string(what) + " must be positive, not " + std::to_string(width), body);
}

dais::Value* bias(NetworkBody& body, const std::string& name, int64_t width, Fans fans,
                  const std::optional<Init>& init) {
  const Init chosen = init.value_or(Init::fan_in_uniform());
  return NetworkBody::inner(body.parameter(name + ".bias", {width}, chosen, fans));
}

std::vector<int64_t> both_ends(const std::vector<int64_t>& padding) {
  std::vector<int64_t> out = padding;
  out.insert(out.end(), padding.begin(), padding.end());
  return out;
}

size_t spatial_axes(Value x) {
  require(x.rank() > 2, "the input has no spatial axes: it must be [batch, channels, space...]",
          NetworkBody::of(x));
  return x.rank() - 2;
}

double window_of(const std::vector<int64_t>& kernel) {
  double window = 1;
  for (const int64_t size : kernel) window *= static_cast<double>(size);
  return window;
}

}  // namespace

Value linear(Value x, int64_t width, const LinearOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  require_width(width, "the width of a linear layer", body);
  const std::string name = body.layer_name(options.name, "linear");
  const int64_t in = x.size(-1);
  const Fans fans{static_cast<double>(in), static_cast<double>(width)};
  const bool matrix = x.rank() == 2;
  const std::vector<int64_t> shape =
      matrix ? std::vector<int64_t>{width, in} : std::vector<int64_t>{in, width};
  const Value weight =
      body.parameter(name + ".weight", shape, options.init.value_or(Init::fan_in_uniform()), fans);
  dais::Value* shift = options.bias ? bias(body, name, width, fans, options.bias_init) : nullptr;
  dais::Values inputs{NetworkBody::inner(x), NetworkBody::inner(weight)};
  if (matrix) {
    if (shift) inputs.push_back(shift);
    return body.add(Gemm{.trans_b = true}, std::move(inputs), name);
  }
  const Value product = body.add(MatMul{}, std::move(inputs), name);
  return shift ? product + body.wrap(shift) : product;
}

Value conv(Value x, int64_t channels, const ConvOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  require_width(channels, "the number of channels", body);
  const size_t axes = spatial_axes(x);
  const std::string name = body.layer_name(options.name, "conv");
  const std::vector<int64_t> kernel = options.kernel.along(axes);
  const int64_t in = x.size(1);
  require(options.groups > 0 && in % options.groups == 0 && channels % options.groups == 0,
          std::to_string(options.groups) + " groups do not divide " + std::to_string(in) +
              " input and " + std::to_string(channels) + " output channels",
          body);
  std::vector<int64_t> shape{channels, in / options.groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const double window = window_of(kernel);
  const Fans fans{static_cast<double>(shape[1]) * window, static_cast<double>(channels) * window};
  const Value weight =
      body.parameter(name + ".weight", shape, options.init.value_or(Init::fan_in_uniform()), fans);
  dais::Values inputs{NetworkBody::inner(x), NetworkBody::inner(weight)};
  if (options.bias) inputs.push_back(bias(body, name, channels, fans, options.bias_init));
  return body.add(Conv{.dilations = options.dilation.along(axes),
                       .kernel_shape = kernel,
                       .pads = both_ends(options.padding.along(axes)),
                       .strides = options.stride.along(axes),
                       .group = options.groups},
                  std::move(inputs), name);
}

Value conv_transpose(Value x, int64_t channels, const ConvOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  require_width(channels, "the number of channels", body);
  const size_t axes = spatial_axes(x);
  const std::string name = body.layer_name(options.name, "conv_transpose");
  const std::vector<int64_t> kernel = options.kernel.along(axes);
  require(options.groups > 0 && channels % options.groups == 0,
          "the groups do not divide the output channels", body);
  std::vector<int64_t> shape{x.size(1), channels / options.groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  const double window = window_of(kernel);
  const Fans fans{static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
  const Value weight =
      body.parameter(name + ".weight", shape, options.init.value_or(Init::fan_in_uniform()), fans);
  dais::Values inputs{NetworkBody::inner(x), NetworkBody::inner(weight)};
  if (options.bias) inputs.push_back(bias(body, name, channels, fans, options.bias_init));
  return body.add(ConvTranspose{.kernel_shape = kernel,
                                .pads = both_ends(options.padding.along(axes)),
                                .strides = options.stride.along(axes),
                                .group = options.groups},
                  std::move(inputs), name);
}

namespace {

/// Scale (initially options.scale) and, unless `centred` is false, shift (initially 0).
dais::Values with_scale(Value x, const std::string& name, int64_t width, const NormOptions& options,
                        bool centred = true) {
  NetworkBody& body = NetworkBody::of(x);
  const auto parameter = [&](const char* what, double value) {
    return NetworkBody::inner(body.parameter(name + what, {width}, Init::constant(value), {}));
  };
  dais::Values out{NetworkBody::inner(x), parameter(".weight", options.scale)};
  if (centred) out.push_back(parameter(".bias", 0));
  return out;
}

}  // namespace

Value batch_norm(Value x, const NormOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  const std::string name = body.layer_name(options.name, "batch_norm");
  const int64_t width = x.size(1);
  dais::Values inputs = with_scale(x, name, width, options);
  for (const auto& [what, value] : {std::pair{".running_mean", 0.0f}, {".running_var", 1.0f}}) {
    Tensor statistic(DType::f32, {width});
    std::fill_n(statistic.storage<float>(), width, value);
    inputs.push_back(NetworkBody::inner(body.fixed_constant(std::move(statistic), name + what)));
  }
  return body.add(BatchNormalization{.epsilon = static_cast<float>(options.epsilon),
                                     .momentum = static_cast<float>(1 - options.momentum)},
                  std::move(inputs), name);
}

Value group_norm(Value x, int64_t groups, const NormOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  const std::string name = body.layer_name(options.name, "group_norm");
  return body.add(
      GroupNormalization{.epsilon = static_cast<float>(options.epsilon), .num_groups = groups},
      with_scale(x, name, x.size(1), options), name);
}

Value layer_norm(Value x, const NormOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  const std::string name = body.layer_name(options.name, "layer_norm");
  return body.add(LayerNormalization{.epsilon = static_cast<float>(options.epsilon)},
                  with_scale(x, name, x.size(-1), options), name);
}

Value rms_norm(Value x, const NormOptions& options) {
  NetworkBody& body = NetworkBody::of(x);
  const std::string name = body.layer_name(options.name, "rms_norm");
  return body.add(RMSNormalization{.epsilon = static_cast<float>(options.epsilon)},
                  with_scale(x, name, x.size(-1), options, false), name);
}

namespace {

template <typename Pool>
Value pool(Value x, const PoolOptions& options, Pool attrs) {
  const size_t axes = spatial_axes(x);
  attrs.kernel_shape = options.kernel.along(axes);
  attrs.strides = options.stride.value_or(options.kernel).along(axes);
  attrs.pads = both_ends(options.padding.along(axes));
  attrs.ceil_mode = options.ceil;
  return NetworkBody::of(x).add(std::move(attrs), {NetworkBody::inner(x)});
}

}  // namespace

Value max_pool(Value x, const PoolOptions& options) { return pool(x, options, MaxPool{}); }

Value average_pool(Value x, const PoolOptions& options) {
  return pool(x, options, AveragePool{.count_include_pad = true});
}

Value global_average_pool(Value x, bool keep) {
  spatial_axes(x);
  const Value means = NetworkBody::of(x).add(GlobalAveragePool{}, {NetworkBody::inner(x)});
  return keep ? means : flatten(means);
}

Value dropout(Value x, double ratio) {
  NetworkBody& body = NetworkBody::of(x);
  require(ratio >= 0 && ratio < 1, "the dropout ratio must be at least 0 and below 1", body);
  if (ratio == 0) return x;
  const std::string name = body.layer_name({}, "dropout");
  const Value share =
      body.fixed_constant(Tensor::scalar(static_cast<float>(ratio)), name + ".ratio");
  const Value training = body.fixed_constant(Tensor::scalar(false), name + ".training");
  return body.add(Dropout{},
                  {NetworkBody::inner(x), NetworkBody::inner(share), NetworkBody::inner(training)},
                  name);
}

Value upsample(Value x, int64_t factor, bool linear) {
  NetworkBody& body = NetworkBody::of(x);
  const std::string name = body.layer_name({}, "upsample");
  Tensor scales(DType::f32, {static_cast<int64_t>(x.rank())});
  for (size_t i = 0; i < x.rank(); ++i)
    scales.data<float>()[i] = i < 2 ? 1.0f : static_cast<float>(factor);
  const Value constant = body.fixed_constant(std::move(scales), name + ".scales");
  Resize attrs;
  attrs.mode = linear ? "linear" : "nearest";
  if (!linear) {
    attrs.coordinate_transformation_mode = "asymmetric";
    attrs.nearest_mode = "floor";
  }
  return body.add(std::move(attrs), {NetworkBody::inner(x), nullptr, NetworkBody::inner(constant)},
                  name);
}

Value embedding(Value indices, int64_t count, int64_t width, const EmbeddingOptions& options) {
  NetworkBody& body = NetworkBody::of(indices);
  require_width(count, "the number of rows of an embedding", body);
  require_width(width, "the width of an embedding", body);
  const std::string name = body.layer_name(options.name, "embedding");
  const Value table =
      body.parameter(name + ".weight", {count, width}, options.init.value_or(Init::normal(1)),
                     {static_cast<double>(count), static_cast<double>(width)});
  return body.add(Gather{}, {NetworkBody::inner(table), NetworkBody::inner(indices)}, name);
}

Value lookup(Value table, Value indices) {
  return NetworkBody::of(table).add(Gather{},
                                    {NetworkBody::inner(table), NetworkBody::inner(indices)});
}

}  // namespace dais::nn
