#include "nn/parts.h"

namespace dais::nn {
namespace {

Value unit(Value x, int64_t channels, int64_t kernel, int64_t stride, const char* conv,
           const char* norm, double scale = 1) {
  return conv_norm(
      x, channels,
      {.conv = {.kernel = kernel, .stride = stride, .padding = kernel / 2, .name = conv},
       .norm = {.scale = scale, .name = norm}});
}

Value shortcut(Value x, int64_t channels, int64_t stride) {
  if (stride == 1 && x.size(1) == channels) return x;
  return unit(x, channels, 1, stride, "downsample.0", "downsample.1");
}

/// `last` is what the scale of the last norm starts from.
Value basic_block(Value x, int64_t width, int64_t stride, double last) {
  Value y = relu(unit(x, width, 3, stride, "conv1", "bn1"));
  y = unit(y, width, 3, 1, "conv2", "bn2", last);
  return relu(y + shortcut(x, width, stride));
}

/// Narrow, 3x3, wide: the stride is that of the 3x3.
Value bottleneck(Value x, int64_t width, int64_t stride, double last) {
  Value y = relu(unit(x, width, 1, 1, "conv1", "bn1"));
  y = relu(unit(y, width, 3, stride, "conv2", "bn2"));
  y = unit(y, 4 * width, 1, 1, "conv3", "bn3", last);
  return relu(y + shortcut(x, 4 * width, stride));
}

}  // namespace

Network ResNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 8);
  DAIS_CHECK(depth == 18 || depth == 34 || depth == 50);
  const std::vector<int64_t> repeats =
      depth == 18 ? std::vector<int64_t>{2, 2, 2, 2} : std::vector<int64_t>{3, 4, 6, 3};
  Network net("resnet" + std::to_string(depth), seed);
  const bool small = is_small(input);
  const double last = zero_residual ? 0 : 1;
  Value x = image_input(net, input);
  x = relu(unit(x, width, small ? 3 : 7, small ? 1 : 2, "conv1", "bn1"));
  if (!small) x = max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  for (size_t stage = 0; stage < repeats.size(); ++stage) {
    for (int64_t i = 0; i < repeats[stage]; ++i) {
      const Scope scope(net, "layer" + std::to_string(stage + 1) + "." + std::to_string(i));
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = depth == 50 ? bottleneck(x, width << stage, stride, last)
                      : basic_block(x, width << stage, stride, last);
    }
  }
  return finish(std::move(net), "classification",
                linear(global_average_pool(x), classes, {.name = "fc"}));
}

}  // namespace dais::nn
