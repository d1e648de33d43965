#include "nn/parts.h"

#include <algorithm>
#include <cmath>

namespace dais::nn {

bool is_small(const InputSize& input) {
  return std::max(input.sizes[1], input.sizes[2]) <= kSmallImage;
}

Value image_input(Network& net, const InputSize& input) {
  if (input.sizes.size() == 1) return net.input("features", {"batch", input.sizes[0]});
  return net.image(input.sizes[0], input.sizes[1], input.sizes[2]);
}

Value conv_norm(Value x, int64_t channels, ConvNorm options) {
  options.conv.bias = false;
  if (!options.conv.init) options.conv.init = Init::kaiming_normal(Init::Fan::out);
  return batch_norm(conv(x, channels, options.conv), options.norm);
}

Network finish(Network net, const char* task, Value logits) {
  net.note("dais.task", task);
  net.output("logits", logits);
  return net;
}

int64_t channels_by(int64_t channels, double scale) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(channels) * scale));
}

int64_t scaled_channels(int64_t channels, double scale) {
  const double wanted = static_cast<double>(channels) * scale;
  const int64_t near = std::max<int64_t>(8, static_cast<int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(near) < 0.9 * wanted ? near + 8 : near;
}

}  // namespace dais::nn
