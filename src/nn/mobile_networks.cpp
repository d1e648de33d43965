#include <algorithm>
#include <cmath>

#include "nn/parts.h"

// Networks of inverted residuals: widen by 1x1, filter each channel, narrow by 1x1.
namespace dais::nn {
namespace {

struct Stage {
  int64_t expand, channels, repeats, stride, kernel = 3;
};

/// The stride of a stage: of small images the first two halvings are left out.
int64_t stride_of(const Stage& stage, int64_t repeat, size_t number, bool small) {
  return repeat > 0 || (small && number == 1) ? 1 : stage.stride;
}

Value mobile_unit(Value x, int64_t channels, ConvOptions options, const std::string& name) {
  options.name = name + ".0";
  return relu6(conv_norm(x, channels, {.conv = options, .norm = {.name = name + ".1"}}));
}

Value mobile_block(Value x, const Stage& stage, int64_t channels, int64_t stride) {
  const int64_t in = x.size(1), middle = in * stage.expand;
  size_t place = 0;
  Value y = x;
  if (stage.expand != 1) y = mobile_unit(y, middle, {.kernel = 1}, numbered("conv", place++));
  y = mobile_unit(y, middle, {.stride = stride, .padding = 1, .groups = middle},
                  numbered("conv", place++));
  y = conv_norm(y, channels,
                {.conv = {.kernel = 1, .name = numbered("conv", place)},
                 .norm = {.name = numbered("conv", place + 1)}});
  return stride == 1 && in == channels ? x + y : y;
}

}  // namespace

Network MobileNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 16);
  const std::vector<Stage> stages{{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Network net("mobilenet-v2", seed);
  const bool small = is_small(input);
  size_t place = 0;
  Value x = mobile_unit(image_input(net, input), scaled_channels(32, scale),
                        {.stride = small ? 1 : 2, .padding = 1}, numbered("features", place++));
  for (size_t number = 0; number < stages.size(); ++number) {
    const Stage& stage = stages[number];
    for (int64_t i = 0; i < stage.repeats; ++i) {
      const Scope scope(net, numbered("features", place++));
      x = mobile_block(x, stage, scaled_channels(stage.channels, scale),
                       stride_of(stage, i, number, small));
    }
  }
  x = mobile_unit(x, scaled_channels(1280, std::max(scale, 1.0)), {.kernel = 1},
                  numbered("features", place));
  x = nn::dropout(global_average_pool(x), dropout);
  return finish(
      std::move(net), "classification",
      linear(x, classes,
             {.init = Init::normal(0.01), .bias_init = Init::constant(0), .name = "classifier.1"}));
}

namespace {

Value efficient_unit(Value x, int64_t channels, ConvOptions options, const std::string& name) {
  options.name = name + ".0";
  return silu(conv_norm(x, channels, {.conv = options, .norm = {.name = name + ".1"}}));
}

/// Scales each channel by a function of all channels' means.
Value squeeze_and_excite(Value x, int64_t narrow, const std::string& name) {
  const auto one_by_one = [&](Value y, int64_t channels, const char* what) {
    return conv(y, channels,
                {.kernel = 1,
                 .init = Init::kaiming_normal(Init::Fan::out),
                 .bias_init = Init::constant(0),
                 .name = name + what});
  };
  const Value inner = silu(one_by_one(global_average_pool(x, true), narrow, ".fc1"));
  return x * sigmoid(one_by_one(inner, x.size(1), ".fc2"));
}

Value efficient_block(Value x, const Stage& stage, int64_t channels, int64_t stride) {
  const int64_t in = x.size(1), middle = in * stage.expand;
  size_t place = 0;
  Value y = x;
  if (stage.expand != 1) y = efficient_unit(y, middle, {.kernel = 1}, numbered("block", place++));
  y = efficient_unit(
      y, middle,
      {.kernel = stage.kernel, .stride = stride, .padding = stage.kernel / 2, .groups = middle},
      numbered("block", place++));
  y = squeeze_and_excite(y, std::max<int64_t>(1, in / 4), numbered("block", place++));
  const std::string last = numbered("block", place);
  y = conv_norm(y, channels,
                {.conv = {.kernel = 1, .name = last + ".0"}, .norm = {.name = last + ".1"}});
  return stride == 1 && in == channels ? x + y : y;
}

}  // namespace

Network EfficientNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 16);
  const std::vector<Stage> stages{{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5},
                                  {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5},
                                  {6, 320, 1, 1, 3}};
  Network net("efficientnet-b0", seed);
  const bool small = is_small(input);
  Value x = efficient_unit(image_input(net, input), scaled_channels(32, scale),
                           {.stride = small ? 1 : 2, .padding = 1}, "features.0");
  for (size_t number = 0; number < stages.size(); ++number) {
    const Stage& stage = stages[number];
    for (int64_t i = 0; i < stage.repeats; ++i) {
      const Scope scope(net, numbered(numbered("features", number + 1), static_cast<size_t>(i)));
      x = efficient_block(x, stage, scaled_channels(stage.channels, scale),
                          stride_of(stage, i, number, small));
    }
  }
  x = efficient_unit(x, 4 * scaled_channels(320, scale), {.kernel = 1}, "features.8");
  x = nn::dropout(global_average_pool(x), dropout);
  return finish(std::move(net), "classification",
                linear(x, classes,
                       {.init = Init::uniform(1 / std::sqrt(static_cast<double>(classes))),
                        .bias_init = Init::constant(0),
                        .name = "classifier.1"}));
}

}  // namespace dais::nn
