#include "ops/lrn/lrn.h"

#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/wide.h"
#include "ops/window.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const auto& attrs = c.attrs<LRN>();
  const Tensor& x = c.in(0);
  c.require(x.rank() >= 2 && attrs.size >= 1, "X must have a channel axis, size be positive");
  const Activation sizes(x.shape(), attrs.channels_last);
  const auto values = load_channels_first<double>(x, attrs.channels_last);
  const int64_t cells = sizes.cells(), channels = sizes.channels;
  const int64_t before = (attrs.size - 1) / 2, after = attrs.size - 1 - before;
  const double share = static_cast<double>(attrs.alpha) / static_cast<double>(attrs.size);
  std::vector<double> out(values.size()), sums(static_cast<size_t>(cells));
  for (int64_t row = 0; row < sizes.batch * channels; ++row) {
    const int64_t channel = row % channels, first = row - channel;
    std::fill(sums.begin(), sums.end(), 0);
    const int64_t low = std::max<int64_t>(channel - before, 0);
    const int64_t high = std::min(channels - 1, channel + after);
    for (int64_t k = low; k <= high; ++k) {
      const double* from = values.data() + (first + k) * cells;
      for (int64_t i = 0; i < cells; ++i) sums[static_cast<size_t>(i)] += from[i] * from[i];
    }
    for (int64_t i = 0; i < cells; ++i) {
      const auto at = static_cast<size_t>(row * cells + i);
      out[at] = values[at] /
                std::pow(static_cast<double>(attrs.bias) + share * sums[static_cast<size_t>(i)],
                         static_cast<double>(attrs.beta));
    }
  }
  store_channels_first(c.out(0, x.shape()), std::move(out), attrs.channels_last);
}

}  // namespace

const Op LRN::op{
    .name = "lrn",
    .attrs = &AttrsOf<LRN>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"LRN"}},
};

namespace ops {
void define_lrn(OpRegistry& registry) { registry.add(LRN::op); }
}  // namespace ops
}  // namespace dais
