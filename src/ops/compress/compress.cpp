#include "ops/compress/compress.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/nonzero/nonzero.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.require(c.dtype(1) == DType::boolean, "the condition is not boolean");
  const auto axis = c.attrs<Compress>().axis;
  if (!axis) return c.set(0, c.dtype(0), {c.fresh()});
  Dims out = c.shape(0);
  out[c.axis(*axis, out.size())] = c.fresh();
  c.set(0, c.dtype(0), out);
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto wanted = c.in(1).data<bool>();
  const auto given = c.attrs<Compress>().axis;
  const size_t axis = given ? normalize_axis(*given, x.rank()) : 0;
  const AxisSplit split = given ? split_axis(x.shape(), axis) : AxisSplit{1, x.elements(), 1};
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::min<int64_t>(split.size, std::ssize(wanted)); ++i)
    if (wanted[static_cast<size_t>(i)]) kept.push_back(i);
  Shape shape = given ? x.shape() : Shape{0};
  shape[axis] = std::ssize(kept);
  Tensor& y = c.out(0, shape);
  visit_storage(x.dtype(), [&]<typename T>() {
    T* to = y.storage<T>();
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t i : kept)
        to = std::copy_n(x.storage<T>() + (outer * split.size + i) * split.inner, split.inner, to);
  });
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& axis = n.as<Compress>()->axis;
  Value* places = g.add(Reshape{}, {g.add(NonZero{}, {n.in[1]}), ints(g, {-1})});
  if (axis) return {g.add(GatherBackward{.axis = *axis}, {dy[0], places, sizes_of(g, n.in[0])})};
  Value* count = g.add(Reshape{}, {g.add(Size{}, {n.in[0]}), ints(g, {1})});
  return {reshape_like(g, g.add(GatherBackward{}, {dy[0], places, count}), n.in[0])};
}

}  // namespace

const Op Compress::op{
    .name = "compress",
    .attrs = &AttrsOf<Compress>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Compress", 9}},
};

namespace ops {
void define_compress(OpRegistry& registry) { registry.add(Compress::op); }
}  // namespace ops
}  // namespace dais
