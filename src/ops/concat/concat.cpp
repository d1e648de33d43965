#include "ops/concat/concat.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/shape/shape.h"
#include "ops/split/split.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer_known(Inference& c) {
  Dims all;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const auto known = c.known(i);
    if (!known || (c.ranked(i) && c.rank(i) != 1)) return;
    all.insert(all.end(), known->begin(), known->end());
  }
  c.set_known(0, std::move(all));
}

void infer(Inference& c) {
  c.require(c.inputs() > 0, "there is nothing to join");
  c.set(0, c.dtype(0));
  infer_known(c);
  Dims out = c.shape(0);
  const size_t axis = c.axis(c.attrs<Concat>().axis, out.size());
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (c.dtype(i) != c.dtype(0)) c.fail("inputs are of different element types");
    const Dims& next = c.shape(i);
    if (next.size() != out.size())
      c.fail("inputs " + dims_text(c.shape(0)) + " and " + dims_text(next) + " differ in rank");
    for (size_t k = 0; k < out.size(); ++k)
      out[k] = k == axis ? out[k] + next[k]
                         : merge_dim(c, out[k], next[k], "sizes beside the joined axis");
  }
  c.set(0, c.dtype(0), out);
}

void reference(Call& c) {
  Shape shape = c.in(0).shape();
  const size_t axis = normalize_axis(c.attrs<Concat>().axis, shape.rank());
  std::vector<const Tensor*> parts;
  shape[axis] = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const Tensor& part = c.in(i);
    Shape beside = part.shape();
    if (beside.rank() != shape.rank()) c.fail("inputs differ in rank");
    beside[axis] = shape[axis];
    if (!(beside == shape) || part.dtype() != c.in(0).dtype())
      c.fail("inputs " + c.in(0).describe() + " and " + part.describe() + " do not fit together");
    shape[axis] += part.shape()[axis];
    parts.push_back(&part);
  }
  concat_into(parts, axis, c.out(0, c.in(0).dtype(), shape));
}

/// Opset 1 joined channels unless told otherwise.
Values import_1(OnnxImport& x) { return x.emit(Concat{.axis = x.integer("axis", 1)}, x.in); }

/// Sizes of the inputs along the axis as one list.
Value* piece_sizes(Graph& g, const Node& n, int64_t axis) {
  std::vector<int64_t> sizes;
  Values parts;
  for (Value* input : n.in) {
    const Dim& size = (*input->type.shape)[static_cast<size_t>(axis)];
    if (size.is_constant()) sizes.push_back(*size.constant());
    parts.push_back(g.add(ShapeOf{.start = axis, .end = axis + 1}, {input}));
  }
  if (sizes.size() == n.in.size()) return ints(g, sizes);
  return g.add(Concat{.axis = 0}, parts);
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  if (n.in.size() == 1) return {dy[0]};
  const auto rank = static_cast<int64_t>(rank_for_gradient(n, n.in[0]));
  for (const Value* input : n.in) rank_for_gradient(n, input);
  int64_t axis = n.as<Concat>()->axis;
  if (axis < 0) axis += rank;
  return g.add_node(Split{.axis = axis}, {dy[0], piece_sizes(g, n, axis)}, n.in.size()).outs;
}

}  // namespace

void concat_into(const std::vector<const Tensor*>& parts, size_t axis, Tensor& y) {
  const AxisSplit whole = split_axis(y.shape(), axis);
  visit_storage(y.dtype(), [&]<typename T>() {
    T* to = y.storage<T>();
    for (int64_t outer = 0; outer < whole.outer; ++outer)
      for (const Tensor* part : parts) {
        const int64_t run = part->shape()[axis] * whole.inner;
        to = std::copy_n(part->storage<T>() + outer * run, run, to);
      }
  });
}

const Op Concat::op{
    .name = "concat",
    .attrs = &AttrsOf<Concat>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Concat", .since = 1, .until = 3, .import = import_1}, {"Concat", 4}},
};

namespace ops {
void define_concat(OpRegistry& registry) { registry.add(Concat::op); }
}  // namespace ops
}  // namespace dais
