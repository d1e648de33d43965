#include "nn/parts.h"

namespace dais::nn {
namespace {

Value double_conv(Value x, int64_t channels, const std::string& name) {
  const Scope scope(x, name);
  for (const char* number : {"1", "2"})
    x = relu(conv_norm(x, channels,
                       {.conv = {.padding = 1, .name = std::string("conv") + number},
                        .norm = {.name = std::string("norm") + number}}));
  return x;
}

}  // namespace

Network UNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input);
  const int64_t multiple = int64_t{1} << depth;
  if (input.sizes[1] % multiple != 0 || input.sizes[2] % multiple != 0)
    fail_flag("input", flag_text(input) + " cannot be halved " + std::to_string(depth) + " times",
              "Height and width must be multiples of " + std::to_string(multiple));
  Network net("unet", seed);
  Value x = image_input(net, input);
  std::vector<Value> skips;
  for (int64_t level = 0; level < depth; ++level) {
    x = double_conv(x, width << level, "down" + std::to_string(level));
    skips.push_back(x);
    x = max_pool(x);
  }
  x = double_conv(x, width << depth, "bottom");
  for (int64_t level = depth; level-- > 0;) {
    const std::string name = "up" + std::to_string(level);
    x = conv_transpose(x, width << level, {.kernel = 2, .stride = 2, .name = name + ".enlarge"});
    x = double_conv(concat({skips[static_cast<size_t>(level)], x}, 1), width << level, name);
  }
  return finish(std::move(net), "segmentation", conv(x, classes, {.kernel = 1, .name = "head"}));
}

}  // namespace dais::nn
