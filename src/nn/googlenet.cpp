#include "nn/parts.h"

namespace dais::nn {
namespace {

Value unit(Value x, int64_t channels, int64_t kernel, const std::string& name, int64_t stride = 1) {
  return relu(conv_norm(x, channels,
                        {.conv = {.kernel = kernel,
                                  .stride = stride,
                                  .padding = kernel / 2,
                                  .init = Init::truncated_normal(0.01),
                                  .name = name + ".conv"},
                         .norm = {.epsilon = 0.001, .name = name + ".bn"}}));
}

/// Channels of the four branches; `before` are those of the 1x1 convolutions that reduce.
struct Inception {
  const char* name;
  int64_t one, before_three, three, before_five, five, pool;

  Inception scaled(double by) const {
    const auto part = [by](int64_t channels) { return channels_by(channels, by); };
    return {name,       part(one), part(before_three), part(three), part(before_five),
            part(five), part(pool)};
  }
};

/// The branch of larger windows is 3x3, as in the reference implementation whose parameter count
/// is the published one.
Value inception(Value x, const Inception& sizes) {
  const Scope scope(x, sizes.name);
  const Value pooled = max_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
  return concat({unit(x, sizes.one, 1, "branch1"),
                 unit(unit(x, sizes.before_three, 1, "branch2.0"), sizes.three, 3, "branch2.1"),
                 unit(unit(x, sizes.before_five, 1, "branch3.0"), sizes.five, 3, "branch3.1"),
                 unit(pooled, sizes.pool, 1, "branch4.1")},
                1);
}

Value stem(Value x, bool small, double scale) {
  const PoolOptions halve{.kernel = 3, .stride = 2, .ceil = true};
  const int64_t first = channels_by(64, scale), second = channels_by(192, scale);
  x = small ? unit(x, first, 3, "conv1") : max_pool(unit(x, first, 7, "conv1", 2), halve);
  x = unit(unit(x, first, 1, "conv2"), second, 3, "conv3");
  return small ? x : max_pool(x, halve);
}

}  // namespace

Network GoogLeNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 16);
  Network net("googlenet", seed);
  Value x = stem(image_input(net, input), is_small(input), scale);
  const auto block = [this](Value from, const Inception& sizes) {
    return inception(from, sizes.scaled(scale));
  };
  x = block(x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = block(x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = max_pool(x, {.kernel = 3, .stride = 2, .ceil = true});
  x = block(x, {"inception4a", 192, 96, 208, 16, 48, 64});
  x = block(x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = block(x, {"inception4c", 128, 128, 256, 24, 64, 64});
  x = block(x, {"inception4d", 112, 144, 288, 32, 64, 64});
  x = block(x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = max_pool(x, {.kernel = 2, .ceil = true});
  x = block(x, {"inception5a", 256, 160, 320, 32, 128, 128});
  x = block(x, {"inception5b", 384, 192, 384, 48, 128, 128});
  x = nn::dropout(global_average_pool(x), dropout);
  return finish(std::move(net), "classification",
                linear(x, classes, {.init = Init::truncated_normal(0.01), .name = "fc"}));
}

}  // namespace dais::nn
