#include "ops/reverse_sequence/reverse_sequence.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<ReverseSequence>();
  c.require(c.rank(0) >= 2, "the input has no batch and time axes");
  const size_t batch = c.axis(attrs.batch_axis, c.rank(0));
  const size_t time = c.axis(attrs.time_axis, c.rank(0));
  c.require(batch + time == 1, "batch and time must be axes 0 and 1");
  c.set(0, c.dtype(0), c.shape(0));
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Shape& shape = x.shape();
  const size_t batch = normalize_axis(c.attrs<ReverseSequence>().batch_axis, x.rank());
  const int64_t batches = shape[batch], times = shape[1 - batch];
  const auto lengths = c.in(1).to_ints();
  c.require(std::ssize(lengths) == batches, "there must be one length for each batch entry");
  for (int64_t length : lengths)
    if (length < 0 || length > times)
      c.fail("length " + std::to_string(length) + " is outside 0 to " + std::to_string(times));
  const int64_t inner = shape.elements(2, shape.rank());
  const int64_t batch_step = batch == 0 ? times * inner : inner;
  const int64_t time_step = batch == 0 ? inner : batches * inner;
  Tensor& y = c.out(0, shape);
  visit_storage(x.dtype(), [&]<typename T>() {
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      for (int64_t t = 0; t < times; ++t) {
        const int64_t from = t < length ? length - 1 - t : t;
        std::copy_n(x.storage<T>() + b * batch_step + from * time_step, inner,
                    y.storage<T>() + b * batch_step + t * time_step);
      }
    }
  });
}

/// Its own inverse.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {g.add(*n.as<ReverseSequence>(), {dy[0], n.in[1]}), nullptr};
}

}  // namespace

const Op ReverseSequence::op{
    .name = "reverse_sequence",
    .attrs = &AttrsOf<ReverseSequence>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"ReverseSequence", 10}},
};

namespace ops {
void define_reverse_sequence(OpRegistry& registry) { registry.add(ReverseSequence::op); }
}  // namespace ops
}  // namespace dais
