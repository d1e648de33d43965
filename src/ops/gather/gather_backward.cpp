#include "ops/gather/gather_backward.h"

#include "ir/inference.h"
#include "ops/elementwise/elements.h"
#include "ops/gather/gather.h"
#include "ops/gather/indices.h"
#include "ops/gradient.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer_sizes(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(2)) return c.set(0, c.dtype(0), *sizes);
  const Dims& count = c.shape(2);
  c.require(count.size() == 1, "the sizes are not a list");
  if (!count[0].is_constant()) return;
  c.require(*count[0].constant() <= int64_t{kMaxRank}, "there are too many sizes");
  Dims out;
  for (int64_t i = 0; i < *count[0].constant(); ++i) out.push_back(c.fresh());
  c.set(0, c.dtype(0), std::move(out));
}

void reference_gather(Call& c) {
  const Tensor &dy = c.in(0), &indices = c.in(1);
  const Shape shape(c.in(2).to_ints());
  const AxisSplit split =
      split_axis(shape, normalize_axis(c.attrs<GatherBackward>().axis, shape.rank()));
  c.require(dy.elements() == split.outer * indices.elements() * split.inner,
            "dy, the indices and the sizes do not match");
  const auto rows = checked_indices(c, indices, split.size);
  std::vector<double> sums(static_cast<size_t>(shape.elements()));
  const auto values = widen<double>(dy);
  const double* from = values.data();
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (const int64_t row : rows) {
      double* to = sums.data() + (outer * split.size + row) * split.inner;
      for (int64_t i = 0; i < split.inner; ++i) to[i] += *from++;
    }
  store_elements(c.out(0, shape), 0, 1, shape.elements(), sums.data());
}

void reference_gather_nd(Call& c) {
  const Tensor &dy = c.in(0), &indices = c.in(1);
  const Shape shape(c.in(2).to_ints());
  const auto batch = static_cast<size_t>(c.attrs<GatherNDBackward>().batch_dims);
  c.require(indices.rank() > batch, "batch_dims is beyond the axes of the indices");
  const auto tuple = static_cast<size_t>(indices.shape().back());
  c.require(batch + tuple <= shape.rank(), "index tuples have more entries than data has axes");
  const int64_t run = shape.elements(batch + tuple, shape.rank());
  std::vector<double> sums(static_cast<size_t>(shape.elements()));
  if (dy.elements() > 0) {
    const auto offsets = tuple_offsets(c, indices, shape, batch);
    c.require(dy.elements() == std::ssize(offsets) * run,
              "dy, the indices and the sizes do not match");
    const auto values = widen<double>(dy);
    const double* from = values.data();
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < run; ++i) sums[static_cast<size_t>(offset + i)] += *from++;
  }
  store_elements(c.out(0, shape), 0, 1, shape.elements(), sums.data());
}

Values gradient_back(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {g.add(Gather{.axis = n.as<GatherBackward>()->axis}, {dy[0], n.in[1]}), nullptr, nullptr};
}
Values gradient_nd_back(Graph& g, const Node& n, std::span<Value* const> dy) {
  const GatherND attrs{.batch_dims = n.as<GatherNDBackward>()->batch_dims};
  return {g.add(attrs, {dy[0], n.in[1]}), nullptr, nullptr};
}

}  // namespace

Values gradient_gather(Graph& g, const Node& n, std::span<Value* const> dy) {
  const GatherBackward attrs{.axis = n.as<Gather>()->axis};
  return {g.add(attrs, {dy[0], n.in[1], sizes_of(g, n.in[0])}), nullptr};
}

Values gradient_gather_elements(Graph& g, const Node& n, std::span<Value* const> dy) {
  const ScatterElements attrs{.axis = n.as<GatherElements>()->axis, .reduction = "add"};
  return {g.add(attrs, {filled_like(g, 0, n.in[0]), n.in[1], dy[0]}), nullptr};
}

Values gradient_gather_nd(Graph& g, const Node& n, std::span<Value* const> dy) {
  const GatherNDBackward attrs{.batch_dims = n.as<GatherND>()->batch_dims};
  return {g.add(attrs, {dy[0], n.in[1], sizes_of(g, n.in[0])}), nullptr};
}

const Op GatherBackward::op{
    .name = "gather_backward",
    .attrs = &AttrsOf<GatherBackward>::info,
    .infer = infer_sizes,
    .reference = reference_gather,
    .gradient = gradient_back,
    .onnx = {{.type = "GatherBackward", .domain = "dais"}},
};
const Op GatherNDBackward::op{
    .name = "gather_nd_backward",
    .attrs = &AttrsOf<GatherNDBackward>::info,
    .infer = infer_sizes,
    .reference = reference_gather_nd,
    .gradient = gradient_nd_back,
    .onnx = {{.type = "GatherNDBackward", .domain = "dais"}},
};

}  // namespace dais
