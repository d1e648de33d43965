#include "nn/parts.h"

namespace dais::nn {
namespace {

constexpr int64_t kBottleneck = 4;  ///< width of the 1x1 convolutions, in units of growth

Value normed(Value x, const char* name) { return relu(batch_norm(x, {.name = name})); }

Value filter(Value x, int64_t channels, ConvOptions options) {
  options.bias = false;
  options.init = Init::kaiming_normal();
  return conv(x, channels, options);
}

/// Each layer sees what all layers before it gave.
Value dense_block(Value x, int64_t layers, int64_t growth) {
  for (int64_t i = 0; i < layers; ++i) {
    const Scope scope(x, "denselayer" + std::to_string(i + 1));
    Value y = filter(normed(x, "norm1"), kBottleneck * growth, {.kernel = 1, .name = "conv1"});
    y = filter(normed(y, "norm2"), growth, {.padding = 1, .name = "conv2"});
    x = concat({x, y}, 1);
  }
  return x;
}

Value transition(Value x) {
  return average_pool(filter(normed(x, "norm"), x.size(1) / 2, {.kernel = 1, .name = "conv"}));
}

Value features(Value x, const DenseNet& options) {
  const Scope features(x, "features");
  const bool small = is_small(options.input);
  x = filter(x, 2 * options.growth,
             {.kernel = small ? 3 : 7,
              .stride = small ? 1 : 2,
              .padding = small ? 1 : 3,
              .name = "conv0"});
  x = normed(x, "norm0");
  if (!small) x = max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  for (size_t i = 0; i < options.blocks.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    if (i > 0) {
      const Scope scope(x, "transition" + std::to_string(i));
      x = transition(x);
    }
    const Scope scope(x, "denseblock" + number);
    x = dense_block(x, options.blocks[i], options.growth);
  }
  return normed(x, "norm5");
}

}  // namespace

Network DenseNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 8);
  Network net("densenet121", seed);
  const Value x = global_average_pool(features(image_input(net, input), *this));
  return finish(std::move(net), "classification",
                linear(x, classes, {.bias_init = Init::constant(0), .name = "classifier"}));
}

}  // namespace dais::nn
