#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

/// Contents of a broadcast small integer tensor: a lone value repeated.
void repeat_known(Inference& c, const Dims& shape) {
  const auto known = c.known(0);
  const Dim count = product(shape, 0, shape.size());
  if (!known || !count.is_constant() || *count.constant() > 64) return;
  const auto total = static_cast<size_t>(*count.constant());
  if (known->size() == total) return c.set_known(0, *known);
  if (known->size() == 1) c.set_known(0, Dims(total, known->front()));
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  Dims wanted;
  if (auto known = c.known(1)) {
    wanted = *known;
    const Dims out = c.broadcast(in, wanted);
    c.set(0, c.dtype(0), out);
    return repeat_known(c, out);
  }
  const Dims& sizes = c.shape(1);
  c.require(sizes.size() == 1, "the shape input is not a list");
  if (!sizes[0].is_constant()) return;
  const auto rank = std::max(in.size(), static_cast<size_t>(*sizes[0].constant()));
  c.require(rank <= kMaxRank, "the output would have too many axes");
  for (size_t axis = 0; axis < rank; ++axis) wanted.push_back(c.fresh());
  c.set(0, c.dtype(0), wanted);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Shape shape = broadcast(x.shape(), Shape(c.in(1).to_ints()));
  Tensor& y = c.out(0, shape);
  copy_strided(shape, x, 0, broadcast_strides(x.shape(), shape), y, 0, dense_steps(shape));
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {reduce_to(g, dy[0], n.in[0])};
}

}  // namespace

const Op Expand::op{
    .name = "expand",
    .attrs = &AttrsOf<Expand>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Expand", 8}},
};

}  // namespace dais
