#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/conv/conv.h"
#include "ops/wide.h"

namespace dais {
namespace {

bool gated(const std::string& activation) { return activation == "silu" || activation == "swish"; }

void infer(Inference& c) {
  const auto& attrs = c.attrs<CausalConvWithState>();
  c.set(0, c.dtype(0));
  c.set(1, c.dtype(0));
  if (!gated(attrs.activation) && attrs.activation != "none")
    c.fail("activation '" + attrs.activation + "' is not known", "Use none, silu or swish");
  const Dims &x = c.shape(0), &w = c.shape(1);
  c.require(x.size() == 3 && w.size() == 3, "X and W must have three axes");
  c.set(0, c.dtype(0), x);
  c.set(1, c.dtype(0), {x[0], x[1], w[2] - Dim(1)});
}

void reference(Call& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  c.require(x.rank() == 3 && w.rank() == 3, "X and W must have three axes");
  const int64_t batch = x.shape()[0], channels = x.shape()[1], length = x.shape()[2];
  const int64_t kernel = w.shape()[2], kept = kernel - 1;
  c.require(kernel >= 1 && w.shape()[0] == channels && w.shape()[1] == 1,
            "W must be [channels, 1, k]");
  const Shape state{batch, channels, kept};
  const WideView<double> values(x), weights(w);
  std::vector<double> bias(static_cast<size_t>(channels), 0), past;
  if (c.has(2)) {
    c.require(c.in(2).elements() == channels, "B must have one value per channel");
    bias = to_wide<double>(c.in(2));
  }
  if (c.has(3)) {
    c.require(c.in(3).shape() == state, "past_state must be [batch, channels, k-1]");
    past = to_wide<double>(c.in(3));
  }
  Tensor& y = c.out(0, x.shape());
  Tensor* present = c.outputs() > 1 ? &c.out(1, state) : nullptr;
  const bool gate = gated(c.attrs<CausalConvWithState>().activation);
  std::vector<double> line(static_cast<size_t>(kept + length), 0.0);
  std::vector<double> out(static_cast<size_t>(length));
  for (int64_t row = 0; row < batch * channels; ++row) {
    if (!past.empty()) std::copy_n(past.begin() + row * kept, kept, line.begin());
    std::copy_n(values.data() + row * length, length, line.begin() + kept);
    const double* factors = weights.data() + row % channels * kernel;
    for (int64_t t = 0; t < length; ++t) {
      double sum = bias[static_cast<size_t>(row % channels)];
      for (int64_t k = 0; k < kernel; ++k) sum += factors[k] * line[static_cast<size_t>(t + k)];
      out[static_cast<size_t>(t)] = gate ? sum / (1 + std::exp(-sum)) : sum;
    }
    store_wide(y, row * length, out.data(), length);
    if (present) store_wide(*present, row * kept, line.data() + length, kept);
  }
}

}  // namespace

const Op CausalConvWithState::op{
    .name = "causal_conv_with_state",
    .attrs = &AttrsOf<CausalConvWithState>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"CausalConvWithState", 27},
             {.type = "CausalConvWithState", .domain = "com.microsoft"}},
};

}  // namespace dais
