#include "ops/unique/unique.h"

#include <algorithm>
#include <numeric>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/gather/gather.h"
#include "ops/gradient.h"
#include "ops/order.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  for (size_t i = 1; i < 4; ++i) c.set(i, DType::i64);
  const Dim count = c.fresh();
  c.set(1, DType::i64, {count});
  c.set(3, DType::i64, {count});
  const auto axis = c.attrs<Unique>().axis;
  if (!axis) c.set(0, c.dtype(0), {count});
  const Dims& in = c.shape(0);
  Dim entries = product(in, 0, in.size());
  if (axis) {
    Dims out = in;
    const size_t at = c.axis(*axis, in.size());
    entries = in[at];
    out[at] = count;
    c.set(0, c.dtype(0), out);
  }
  c.set(2, DType::i64, {entries});
}

/// -1, 0 or 1: slice `a` against slice `b` of one axis, element by element.
template <typename T>
int compare_slices(const T* x, const AxisSplit& split, int64_t a, int64_t b) {
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (int64_t i = 0; i < split.inner; ++i) {
      const T& left = x[(outer * split.size + a) * split.inner + i];
      const T& right = x[(outer * split.size + b) * split.inner + i];
      if (ordered_before(left, right)) return -1;
      if (ordered_before(right, left)) return 1;
    }
  return 0;
}

struct Groups {
  std::vector<int64_t> first, inverse, counts;
};

/// Groups equal slices; the groups are in sorted order or in order of first appearance.
template <typename T>
Groups group(const T* x, const AxisSplit& split, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(split.size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_slices(x, split, a, b) < 0; });
  Groups out;
  out.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare_slices(x, split, order[i - 1], order[i]) != 0) {
      out.first.push_back(order[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[static_cast<size_t>(order[i])] = std::ssize(out.first) - 1;
  }
  if (sorted) return out;
  std::vector<int64_t> by_place(out.first.size()), rank(out.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](int64_t a, int64_t b) {
    return out.first[static_cast<size_t>(a)] < out.first[static_cast<size_t>(b)];
  });
  Groups placed;
  for (size_t i = 0; i < by_place.size(); ++i) {
    const auto from = static_cast<size_t>(by_place[i]);
    placed.first.push_back(out.first[from]);
    placed.counts.push_back(out.counts[from]);
    rank[from] = static_cast<int64_t>(i);
  }
  for (int64_t old : out.inverse) placed.inverse.push_back(rank[static_cast<size_t>(old)]);
  return placed;
}

void give_list(Call& c, size_t output, const std::vector<int64_t>& list) {
  if (output >= c.outputs()) return;
  Tensor& y = c.out(output, Shape{std::ssize(list)});
  std::copy(list.begin(), list.end(), y.data<int64_t>().begin());
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<Unique>();
  const size_t axis = attrs.axis ? normalize_axis(*attrs.axis, x.rank()) : 0;
  const AxisSplit split = attrs.axis ? split_axis(x.shape(), axis) : AxisSplit{1, x.elements(), 1};
  visit_dtype<AllTypes>(x.dtype(), [&]<typename T>() {
    const T* from = x.data<T>().data();
    const Groups groups = group(from, split, attrs.sorted);
    Shape shape = attrs.axis ? x.shape() : Shape{0};
    shape[axis] = std::ssize(groups.first);
    T* to = c.out(0, shape).template data<T>().data();
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t i : groups.first)
        to = std::copy_n(from + (outer * split.size + i) * split.inner, split.inner, to);
    give_list(c, 1, groups.first);
    give_list(c, 2, groups.inverse);
    give_list(c, 3, groups.counts);
  });
}

/// Of equal elements the first takes the gradient.
Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  need_outputs(g, n, 2);
  const auto& axis = n.as<Unique>()->axis;
  if (axis) return {g.add(GatherBackward{.axis = *axis}, {dy[0], n.outs[1], sizes_of(g, n.in[0])})};
  Value* count = g.add(Reshape{}, {g.add(Size{}, {n.in[0]}), ints(g, {1})});
  return {reshape_like(g, g.add(GatherBackward{}, {dy[0], n.outs[1], count}), n.in[0])};
}

}  // namespace

const Op Unique::op{
    .name = "unique",
    .attrs = &AttrsOf<Unique>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"Unique", 11}},
};

namespace ops {
void define_unique(OpRegistry& registry) { registry.add(Unique::op); }
}  // namespace ops
}  // namespace dais
