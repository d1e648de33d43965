#include <algorithm>

#include "nn/parts.h"

// Perceptrons, and convolutional networks without branches.
namespace dais::nn {

Network Mlp::build(uint64_t seed) const {
  check_flags(*this);
  Network net("mlp", seed);
  Value x = image_input(net, input);
  if (x.rank() > 2) x = flatten(x);
  for (const int64_t size : hidden) x = nn::dropout(relu(linear(x, size)), dropout);
  return finish(std::move(net), "classification", linear(x, classes));
}

Network LeNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 12);
  if (filters.size() != 2)
    fail_flag("filters", "there are two convolutions, not " + std::to_string(filters.size()),
              "Give two numbers, for example 6,16");
  Network net("lenet5", seed);
  Value x = image_input(net, input);
  const bool pad_first = same || std::min(input.sizes[1], input.sizes[2]) < 32;
  x = max_pool(relu(conv(x, filters[0], {.kernel = 5, .padding = pad_first ? 2 : 0})));
  x = max_pool(relu(conv(x, filters[1], {.kernel = 5, .padding = same ? 2 : 0})));
  x = flatten(x);
  for (const int64_t size : hidden) x = relu(linear(x, size));
  return finish(std::move(net), "classification", linear(x, classes));
}

Network AlexNet::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 63);
  Network net("alexnet", seed);
  const auto part = [this](int64_t channels) { return channels_by(channels, scale); };
  const PoolOptions pool{.kernel = 3, .stride = 2};
  Value x = image_input(net, input);
  x = relu(conv(x, part(64), {.kernel = 11, .stride = 4, .padding = 2, .name = "features.0"}));
  x = max_pool(x, pool);
  x = relu(conv(x, part(192), {.kernel = 5, .padding = 2, .name = "features.3"}));
  x = max_pool(x, pool);
  x = relu(conv(x, part(384), {.padding = 1, .name = "features.6"}));
  x = relu(conv(x, part(256), {.padding = 1, .name = "features.8"}));
  x = relu(conv(x, part(256), {.padding = 1, .name = "features.10"}));
  x = flatten(max_pool(x, pool));
  x = relu(linear(nn::dropout(x, dropout), part(4096), {.name = "classifier.1"}));
  x = relu(linear(nn::dropout(x, dropout), part(4096), {.name = "classifier.4"}));
  return finish(std::move(net), "classification", linear(x, classes, {.name = "classifier.6"}));
}

Network Vgg::build(uint64_t seed) const {
  check_flags(*this);
  require_image(input, 32);
  DAIS_CHECK(depth == 11 || depth == 16);
  const std::vector<int64_t> repeats =
      depth == 11 ? std::vector<int64_t>{1, 1, 2, 2, 2} : std::vector<int64_t>{2, 2, 3, 3, 3};
  const Init filter = Init::kaiming_normal(Init::Fan::out), zero = Init::constant(0);
  Network net("vgg" + std::to_string(depth), seed);
  Value x = image_input(net, input);
  size_t place = 0;  // counts convolution, norm, ReLU and pooling
  for (size_t stage = 0; stage < repeats.size(); ++stage) {
    const int64_t channels = width << std::min<size_t>(stage, 3);
    for (int64_t i = 0; i < repeats[stage]; ++i) {
      x = conv(
          x, channels,
          {.padding = 1, .init = filter, .bias_init = zero, .name = numbered("features", place++)});
      if (batch_norm) x = nn::batch_norm(x, {.name = numbered("features", place++)});
      x = relu(x);
      ++place;
    }
    x = max_pool(x);
    ++place;
  }
  x = flatten(x);
  const auto dense = [&](int64_t size, const char* name) {
    return linear(x, size, {.init = Init::normal(0.01), .bias_init = zero, .name = name});
  };
  x = nn::dropout(relu(dense(64 * width, "classifier.0")), dropout);
  x = nn::dropout(relu(dense(64 * width, "classifier.3")), dropout);
  return finish(std::move(net), "classification", dense(classes, "classifier.6"));
}

}  // namespace dais::nn
