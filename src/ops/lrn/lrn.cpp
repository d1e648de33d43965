#include "ops/lrn/lrn.h"

#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/pool/pool.h"
#include "ops/reshape/reshape.h"
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

/// With s = bias + alpha * mean(x * x) over the window:
/// dx = dy * s^-beta - 2 alpha beta x * mean'(dy * x * s^(-beta - 1)),
/// where mean' goes over the channels whose windows see this one.
Values gradient(Graph& g, const Node& n, std::span<Value* const> given) {
  const auto& attrs = *n.as<LRN>();
  const size_t rank = rank_for_gradient(n, n.in[0]);
  const auto channels = (*n.in[0]->type.shape)[channel_axis(rank, attrs.channels_last)].constant();
  if (!channels) no_gradient(n, "the number of channels is not known");
  const int64_t before = (attrs.size - 1) / 2, after = attrs.size - 1 - before;
  const auto mean = [&](const Term& x, int64_t low, int64_t high) {
    std::vector<int64_t> form{0, 1, *channels, -1}, kernel{attrs.size, 1}, pads{low, 0, high, 0};
    if (attrs.channels_last)
      form = {0, 1, -1, *channels}, kernel = {1, attrs.size}, pads = {0, low, 0, high};
    Value* plane = g.add(Reshape{}, {x, ints(g, form)});
    const AveragePool window{.count_include_pad = true, .kernel_shape = kernel, .pads = pads};
    return Term(g, reshape_like(g, g.add(window, {plane}), n.in[0]));
  };
  const auto alpha = static_cast<double>(attrs.alpha), beta = static_cast<double>(attrs.beta);
  const Term x(g, n.in[0]), dy(g, given[0]);
  const Term sum = mean(x * x, before, after) * alpha + static_cast<double>(attrs.bias);
  const Term scaled = dy * Term(g, g.add(Pow{}, {sum, number_like(g, -beta, x)}));
  return {scaled - x * mean(scaled * x / sum, after, before) * (2 * alpha * beta)};
}

}  // namespace

const Op LRN::op{
    .name = "lrn",
    .attrs = &AttrsOf<LRN>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"LRN"}},
};

namespace ops {
void define_lrn(OpRegistry& registry) { registry.add(LRN::op); }
}  // namespace ops
}  // namespace dais
