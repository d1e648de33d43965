#include "ops/slice/slice.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/cost.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

struct Range {
  Dim start, length;
};

/// A bound counted from the front: negative ones have the size added.
Dim from_front(const Dim& bound, const Dim& size) {
  if (bound.is_constant()) {
    const int64_t number = *bound.constant();
    if (number >= 0) return bound;
    // Far below any start: the clamp that follows takes over, without overflow.
    return number < -(int64_t{1} << 60) ? Dim(-1) : size + bound;
  }
  if (never_negative(bound)) return bound;
  // Adds the size exactly when the expression turns out negative.
  return bound + size * min(max(Dim(0) - bound, 0), 1);
}

/// A bound meant as "to the end", which needs no clamping against a symbolic size.
bool beyond(const Dim& bound) { return bound.is_constant() && *bound.constant() >= INT32_MAX; }

Range forward(const Dim& size, const Dim& from, const Dim& to, int64_t step) {
  const bool symbolic = !size.is_constant();
  const Dim start = symbolic && beyond(from) ? size : lesser(greater(from, 0), size);
  const Dim end = symbolic && beyond(to) ? size : lesser(greater(to, 0), size);
  // floor((n - 1) / step) + 1 is the ceiling without overflow.
  return {start, greater(floordiv(end - start - 1, step) + 1, 0)};
}

Range backward(const Dim& size, const Dim& from, const Dim& to, int64_t step) {
  const Dim last = size - 1;
  const bool symbolic = !size.is_constant();
  const Dim start =
      from == last || (symbolic && beyond(from)) ? last : greater(lesser(from, last), 0);
  const Dim end = symbolic && beyond(to) ? last : greater(lesser(to, last), -1);
  // An empty axis has no last element: there the formula would count one.
  return {start, lesser(greater(floordiv(start - end - 1, -step) + 1, 0), size)};
}

template <typename Context>
Range resolve(const Context& c, const Dim& size, const Dim& from, const Dim& to, int64_t step) {
  if (step == 0) c.fail("a step is zero");
  if (step > 0) return forward(size, from_front(from, size), from_front(to, size), step);
  return backward(size, from_front(from, size), from_front(to, size), std::max(step, -INT64_MAX));
}

/// Which axes are sliced and how far each goes at once.
struct Steps {
  std::vector<size_t> axes;
  std::vector<int64_t> steps;
};

template <typename Context>
Steps pair_steps(const Context& c, size_t rank, size_t count,
                 const std::optional<std::vector<int64_t>>& axes,
                 const std::optional<std::vector<int64_t>>& steps) {
  std::vector<int64_t> listed = axes.value_or(std::vector<int64_t>{});
  if (!axes)
    for (size_t axis = 0; axis < count; ++axis) listed.push_back(static_cast<int64_t>(axis));
  Steps out{checked_axes(c, listed, rank), steps.value_or(std::vector<int64_t>(count, 1))};
  if (out.axes.size() != count || out.steps.size() != count)
    c.fail("starts, ends, axes and steps differ in length");
  return out;
}

/// Contents of a sliced list of sizes.
void infer_known(Inference& c, const Range& range, int64_t step) {
  const auto known = c.known(0);
  if (!known || !range.start.is_constant() || !range.length.is_constant()) return;
  Dims out;
  for (int64_t i = 0; i < *range.length.constant(); ++i) {
    const int64_t at = *range.start.constant() + i * step;
    if (at < 0 || at >= static_cast<int64_t>(known->size())) return;
    out.push_back((*known)[static_cast<size_t>(at)]);
  }
  c.set_known(0, out);
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& in = c.shape(0);
  const auto axes = c.known_ints(3), steps = c.known_ints(4);
  const auto starts = c.known(1), ends = c.known(2);
  if ((c.has(3) && !axes) ||
      (!axes && !starts && !(c.ranked(1) && c.rank(1) == 1 && c.shape(1)[0].is_constant()))) {
    // Any axis may be cut.
    Dims out;
    for (size_t axis = 0; axis < in.size(); ++axis) out.push_back(c.fresh());
    return c.set(0, c.dtype(0), out);
  }
  const size_t count = axes     ? axes->size()
                       : starts ? starts->size()
                                : static_cast<size_t>(*c.shape(1)[0].constant());
  Dims out = in;
  const Steps all = pair_steps(c, in.size(), count, axes, steps);
  for (size_t i = 0; i < count; ++i) {
    Dim& size = out[all.axes[i]];
    if (!starts || !ends || (c.has(4) && !steps)) {
      size = c.fresh();
      continue;
    }
    c.require(starts->size() == count && ends->size() == count,
              "starts, ends, axes and steps differ in length");
    const Range range = resolve(c, size, (*starts)[i], (*ends)[i], all.steps[i]);
    size = range.length;
    if (in.size() == 1) infer_known(c, range, all.steps[i]);
  }
  c.set(0, c.dtype(0), out);
}

/// How the elements of a slice lie in what it is cut from.
struct Cut {
  Shape shape;  ///< of the slice
  int64_t origin = 0;
  Strides walk;
};

/// Inputs from `first` on are starts, ends, axes? and steps?.
Cut cut_of(const Call& c, const Shape& whole, size_t first) {
  const auto starts = c.in(first).to_ints(), ends = c.in(first + 1).to_ints();
  std::optional<std::vector<int64_t>> axes, steps;
  if (c.has(first + 2)) axes = c.in(first + 2).to_ints();
  if (c.has(first + 3)) steps = c.in(first + 3).to_ints();
  const Steps all = pair_steps(c, whole.rank(), starts.size(), axes, steps);
  if (ends.size() != starts.size()) c.fail("starts, ends, axes and steps differ in length");
  Cut out{.shape = whole, .walk = dense_steps(whole)};
  const Shape strides = strides_of(whole);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = all.axes[i];
    const Range range = resolve(c, whole[axis], starts[i], ends[i], all.steps[i]);
    const int64_t length = out.shape[axis] = *range.length.constant();
    if (length == 0) continue;
    out.origin += *range.start.constant() * strides[axis];
    out.walk[axis] = length == 1 ? 0 : strides[axis] * all.steps[i];
  }
  return out;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const Cut cut = cut_of(c, x.shape(), 1);
  Tensor& y = c.out(0, cut.shape);
  if (cut.shape.elements() > 0)
    copy_strided(cut.shape, x, cut.origin, cut.walk, y, 0, dense_steps(cut.shape));
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(1)) return c.set(0, c.dtype(0), *sizes);
  Dims out;
  for (size_t axis = 0; axis < c.rank(0); ++axis) out.push_back(c.fresh());
  c.set(0, c.dtype(0), out);
}

void reference_backward(Call& c) {
  const Tensor& dy = c.in(0);
  const Shape whole(c.in(1).to_ints());
  const Cut cut = cut_of(c, whole, 2);
  c.require(dy.shape() == cut.shape, "dy is not of the slice's shape");
  Tensor& dx = c.out(0, whole);
  std::fill_n(static_cast<char*>(dx.raw()), dx.bytes(), char{0});
  if (cut.shape.elements() > 0)
    copy_strided(cut.shape, dy, 0, dense_steps(cut.shape), dx, cut.origin, cut.walk);
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values in{dy[0], sizes_of(g, n.in[0])};
  in.insert(in.end(), n.in.begin() + 1, n.in.end());
  return {g.add(SliceBackward{}, in)};
}

Values gradient_backward(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values in{dy[0]};
  in.insert(in.end(), n.in.begin() + 2, n.in.end());
  return {g.add(Slice{}, in)};
}

/// Bounds were attributes before opset 10.
Values import_1(OnnxImport& x) {
  Value* axes = x.attribute("axes") ? x.ints(x.integers("axes")) : nullptr;
  return x.emit(Slice{},
                {x.input(0), x.ints(x.integers("starts")), x.ints(x.integers("ends")), axes});
}

}  // namespace

const Op Slice::op{
    .name = "slice",
    .attrs = &AttrsOf<Slice>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .cost = cost_of_taking,
    .onnx = {{.type = "Slice", .since = 1, .until = 9, .import = import_1}, {"Slice", 10}},
};

const Op SliceBackward::op{
    .name = "slice_backward",
    .attrs = &AttrsOf<SliceBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .gradient = gradient_backward,
    .onnx = {{.type = "SliceBackward", .domain = "dais"}},
};

namespace ops {
void define_slice(OpRegistry& registry) {
  registry.add(Slice::op);
  registry.add(SliceBackward::op);
}
}  // namespace ops
}  // namespace dais
