#include "ops/tile/tile.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/concat/concat.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/pad/mapped_copy.h"
#include "ops/reshape/reshape.h"

namespace dais {
namespace {

void infer_known(Inference& c, const Dim& times) {
  const auto known = c.known(0);
  if (!known || !times.is_constant() || *times.constant() < 0 || *times.constant() > 64) return;
  Dims out;
  for (int64_t i = 0; i < *times.constant(); ++i)
    out.insert(out.end(), known->begin(), known->end());
  c.set_known(0, std::move(out));
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  const auto repeats = c.known(1);
  Dims out;
  if (repeats && repeats->size() != in.size())
    c.fail("there are " + std::to_string(repeats->size()) + " repeats for " +
           std::to_string(in.size()) + " axes");
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (repeats && (*repeats)[axis].is_constant())
      c.require(*(*repeats)[axis].constant() >= 0, "a repeat count is negative");
    out.push_back(repeats ? in[axis] * (*repeats)[axis] : c.fresh());
  }
  c.set(0, c.dtype(0), out);
  if (repeats && in.size() == 1) infer_known(c, repeats->front());
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto repeats = c.in(1).to_ints();
  c.require(repeats.size() == x.rank(), "there must be one repeat count for each axis");
  Shape shape = x.shape();
  for (size_t axis = 0; axis < x.rank(); ++axis)
    if (repeats[axis] < 0 || __builtin_mul_overflow(shape[axis], repeats[axis], &shape[axis]))
      c.fail("repeat count " + std::to_string(repeats[axis]) + " is out of range");
  Tensor& y = c.out(0, shape);
  if (shape.elements() == 0) return;
  IndexMaps maps(x.rank());
  for (size_t axis = 0; axis < x.rank(); ++axis)
    for (int64_t i = 0; i < shape[axis]; ++i) maps[axis].push_back(i % x.shape()[axis]);
  copy_mapped(x, maps, {}, y);
}

/// Opset 1 repeated one axis: inputs data, count and axis.
Values import_1(OnnxImport& x) {
  const Value* data = x.input(0);
  if (!data || !x.has(1) || !x.has(2) || !x.in[1]->constant() || !x.in[2]->constant() ||
      !data->type.ranked())
    x.fail("opset 1 needs a constant count and axis, and data of known rank",
           "Convert the model to opset 6 or later");
  std::vector<int64_t> repeats(data->type.shape->size(), 1);
  repeats[normalize_axis(static_cast<int64_t>(x.in[2]->constant()->to_double()), repeats.size())] =
      static_cast<int64_t>(x.in[1]->constant()->to_double());
  return x.emit(Tile{}, {x.in[0], x.ints(repeats)});
}

/// The sum over the repetitions: each axis is seen as (repeats, size).
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const size_t rank = rank_for_gradient(n, n.in[0]);
  if (rank == 0) return {dy[0], nullptr};
  const auto column = [&](Value* list) { return g.add(Unsqueeze{}, {list, ints(g, {1})}); };
  Value* pairs = g.add(Concat{.axis = 1}, {column(n.in[1]), column(sizes_of(g, n.in[0]))});
  Value* sizes = g.add(Reshape{}, {pairs, ints(g, {static_cast<int64_t>(2 * rank)})});
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(2 * i));
  Value* split = g.add(Reshape{.allowzero = true}, {dy[0], sizes});
  return {sum_over(g, split, axes, false), nullptr};
}

}  // namespace

const Op Tile::op{
    .name = "tile",
    .attrs = &AttrsOf<Tile>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Tile", .since = 1, .until = 5, .import = import_1}, {"Tile", 6}},
};

namespace ops {
void define_tile(OpRegistry& registry) { registry.add(Tile::op); }
}  // namespace ops
}  // namespace dais
