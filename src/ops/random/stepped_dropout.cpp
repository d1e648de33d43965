#include "ops/random/stepped_dropout.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const float ratio = c.attrs<SteppedDropout>().ratio;
  if (!(ratio >= 0 && ratio < 1)) c.fail("the ratio is not from 0 to below 1");
  if (c.ranked(0)) c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  c.require(c.in(1).elements() == 1, "the step must be a scalar");
  const KeepRule rule(c.attrs<SteppedDropout>(), c.in(1).to_ints()[0]);
  auto values = to_wide<double>(c.in(0));
  for (size_t i = 0; i < values.size(); i += 4) {
    const Philox::Block block = rule.random.block(i / 4);
    for (size_t k = 0; k < 4 && i + k < values.size(); ++k)
      values[i + k] = block[k] < rule.limit ? 0 : values[i + k] * static_cast<double>(rule.scale);
  }
  store_wide(c.out(0, c.in(0).shape()), 0, values.data(), std::ssize(values));
}

/// The same elements pass, with the same factor.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {g.add(*n.as<SteppedDropout>(), {dy[0], n.in[1]}), nullptr};
}

}  // namespace

const Op SteppedDropout::op{
    .name = "stepped_dropout",
    .attrs = &AttrsOf<SteppedDropout>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "SteppedDropout", .domain = "dais"}},
};

}  // namespace dais
