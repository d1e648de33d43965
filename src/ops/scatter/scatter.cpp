#include "ops/scatter/scatter.h"

#include <algorithm>

#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/gather/indices.h"
#include "ops/gradient.h"
#include "ops/scatter/combine.h"
#include "ops/strided.h"

namespace dais {
namespace {

template <typename Context>
ScatterCombine parse_reduction(const Context& c, const std::string& text) {
  if (const auto how = scatter_combine(text)) return *how;
  c.fail("the reduction '" + text + "' is unknown", "Use none, add, mul, min or max");
}

/// Runs body(apply) where apply(to, from) is the reduction of one element by address.
template <typename Body>
void visit_reduction(ScatterCombine reduction, DType dtype, Body&& body) {
  if (reduction == ScatterCombine::none)
    return visit_storage(dtype, [&]<typename T>() {
      body.template operator()<T>([](T& to, const T& from) { to = from; });
    });
  visit_dtype<NumericTypes>(dtype, [&]<typename T>() {
    body.template operator()<T>(
        [reduction](T& to, const T& from) { to = combined(reduction, to, from); });
  });
}

Tensor& copied(Call& c, const Tensor& x) {
  Tensor& y = c.out(0, x.shape());
  visit_storage(x.dtype(), [&]<typename T>() {
    if (y.raw() != x.raw()) std::copy_n(x.storage<T>(), x.elements(), y.storage<T>());
  });
  return y;
}

void check_types(Inference& c) {
  c.set(0, c.dtype(0));
  c.require(c.dtype(0) == c.dtype(2), "data and updates are of different element types");
  if (c.ranked(0)) c.set(0, c.dtype(0), c.shape(0));
}

void infer_elements(Inference& c) {
  check_types(c);
  parse_reduction(c, c.attrs<ScatterElements>().reduction);
  const size_t rank = c.rank(0);
  c.axis(c.attrs<ScatterElements>().axis, rank);
  c.require(c.rank(1) == rank && c.rank(2) == rank, "data, indices and updates differ in rank");
  for (size_t axis = 0; axis < rank; ++axis)
    merge_dim(c, c.shape(1)[axis], c.shape(2)[axis], "the shapes of indices and updates");
}

void scatter_elements(Call& c) {
  const Tensor &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
  const Shape& shape = indices.shape();
  const size_t axis = normalize_axis(c.attrs<ScatterElements>().axis, data.rank());
  if (!(shape == updates.shape()) || shape.rank() != data.rank())
    c.fail("indices " + shape.text() + " and updates " + updates.shape().text() +
           " do not fit data " + data.shape().text());
  for (size_t i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] > data.shape()[i])
      c.fail("indices " + shape.text() + " are larger than data " + data.shape().text());
  const auto at = checked_indices(c, indices, data.shape()[axis]);
  const Shape strides = strides_of(data.shape());
  Strides steps{};
  for (size_t i = 0; i < shape.rank(); ++i) steps[i] = i == axis ? 0 : strides[i];
  Tensor& y = copied(c, data);
  const StridedLoop<2> loop(shape, {broadcast_strides(shape, shape), steps});
  const auto reduction = parse_reduction(c, c.attrs<ScatterElements>().reduction);
  visit_reduction(reduction, data.dtype(), [&]<typename T>(auto apply) {
    const T* from = updates.storage<T>();
    T* to = y.storage<T>();
    loop.rows([&](const std::array<int64_t, 2>& row) {
      for (int64_t i = 0; i < loop.size(); ++i) {
        const int64_t k = row[0] + i * loop.step(0);
        apply(to[row[1] + i * loop.step(1) + at[static_cast<size_t>(k)] * strides[axis]], from[k]);
      }
    });
  });
}

void infer_nd(Inference& c) {
  check_types(c);
  parse_reduction(c, c.attrs<ScatterND>().reduction);
}

void scatter_nd(Call& c) {
  const Tensor &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
  c.require(indices.rank() > 0 && indices.shape().back() <= static_cast<int64_t>(data.rank()),
            "the index tuples do not fit the data");
  const auto tuple = static_cast<size_t>(indices.shape().back());
  const int64_t run = data.shape().elements(tuple, data.rank());
  Shape wanted;
  for (size_t i = 0; i + 1 < indices.rank(); ++i) wanted.push_back(indices.shape()[i]);
  for (size_t i = tuple; i < data.rank(); ++i) wanted.push_back(data.shape()[i]);
  if (!(updates.shape() == wanted))
    c.fail("updates are " + updates.shape().text() + " instead of " + wanted.text());
  std::vector<int64_t> offsets;
  if (updates.elements() > 0) offsets = tuple_offsets(c, indices, data.shape(), 0);
  Tensor& y = copied(c, data);
  const auto reduction = parse_reduction(c, c.attrs<ScatterND>().reduction);
  visit_reduction(reduction, data.dtype(), [&]<typename T>(auto apply) {
    const T* from = updates.storage<T>();
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < run; ++i) apply(y.storage<T>()[offset + i], *from++);
  });
}

void infer_tensor_scatter(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<TensorScatter>();
  if (attrs.mode != "linear" && attrs.mode != "circular")
    c.fail("the mode '" + attrs.mode + "' is unknown", "Use linear or circular");
  const Dims& in = c.shape(0);
  const size_t axis = c.axis(attrs.axis, in.size());
  c.require(axis > 0, "the axis cannot be the batch axis");
  c.require(!c.ranked(1) || c.rank(1) == in.size(), "the cache and the update differ in rank");
  c.set(0, c.dtype(0), in);
}

void tensor_scatter(Call& c) {
  const Tensor &cache = c.in(0), &update = c.in(1);
  const auto& attrs = c.attrs<TensorScatter>();
  const size_t axis = normalize_axis(attrs.axis, cache.rank());
  Shape fits = update.shape();
  if (fits.rank() == cache.rank() && fits[axis] <= cache.shape()[axis])
    fits[axis] = cache.shape()[axis];
  if (!(fits == cache.shape()) || cache.dtype() != update.dtype())
    c.fail("the update " + update.describe() + " does not fit the cache " + cache.describe());
  const AxisSplit to = split_axis(cache.shape(), axis), from = split_axis(update.shape(), axis);
  const int64_t batches = cache.shape()[0];
  std::vector<int64_t> starts(static_cast<size_t>(batches), 0);
  if (c.has(2)) starts = c.in(2).to_ints();
  c.require(static_cast<int64_t>(starts.size()) == batches,
            "there must be one write index for each batch entry");
  const bool circular = attrs.mode == "circular";
  for (int64_t& start : starts) {
    if (start < 0 || (!circular && start > to.size - from.size))
      c.fail("write index " + std::to_string(start) + " is outside a cache of " +
             std::to_string(to.size) + " with " + std::to_string(from.size) + " to write");
    if (circular && to.size > 0) start %= to.size;
  }
  Tensor& y = copied(c, cache);
  visit_storage(cache.dtype(), [&]<typename T>() {
    const T* source = update.storage<T>();
    for (int64_t outer = 0; outer < from.outer; ++outer) {
      const int64_t start = starts[static_cast<size_t>(outer / (from.outer / batches))];
      for (int64_t i = 0; i < from.size; ++i, source += to.inner)
        std::copy_n(source, to.inner,
                    y.storage<T>() + (outer * to.size + (start + i) % to.size) * to.inner);
    }
  });
}

/// Where in dy each update went.
Term picked(Graph& g, const Node& n, Value* from) {
  if (const auto* attrs = n.as<ScatterElements>())
    return {g, g.add(GatherElements{.axis = attrs->axis}, {from, n.in[1]})};
  return {g, g.add(GatherND{}, {from, n.in[1]})};
}
Term scattered(Graph& g, const Node& n, Value* into, Value* updates, const std::string& reduction) {
  if (const auto* attrs = n.as<ScatterElements>())
    return {g, g.add(ScatterElements{attrs->axis, reduction}, {into, n.in[1], updates})};
  return {g, g.add(ScatterND{reduction}, {into, n.in[1], updates})};
}

/// Indices are taken to be different from each other, but for reduction add.
Values gradient_scatter(Graph& g, const Node& n, const std::string& reduction, Value* given) {
  const Term dy(g, given), data(g, n.in[0]), updates(g, n.in[2]), y(g, n.outs[0]);
  if (reduction == "add") return {dy, nullptr, picked(g, n, dy)};
  if (reduction == "none")
    return {scattered(g, n, dy, filled_like(g, 0, updates), "none"), nullptr, picked(g, n, dy)};
  if (reduction == "mul") {
    const Term factors = scattered(g, n, filled_like(g, 1, data), updates, "mul");
    return {dy * factors, nullptr, picked(g, n, dy) * picked(g, n, data)};
  }
  // The larger or smaller one takes all.
  const Term kept(g, g.add(Equal{}, {y.value, data.value}));
  const Term won(g, g.add(Equal{}, {picked(g, n, y).value, updates.value}));
  return {where(kept, dy, 0), nullptr, where(won, picked(g, n, dy), 0)};
}

Values gradient_elements(Graph& g, const Node& n, std::span<Value* const> dy) {
  return gradient_scatter(g, n, n.as<ScatterElements>()->reduction, dy[0]);
}
Values gradient_nd(Graph& g, const Node& n, std::span<Value* const> dy) {
  return gradient_scatter(g, n, n.as<ScatterND>()->reduction, dy[0]);
}

}  // namespace

const Op ScatterElements::op{
    .name = "scatter_elements",
    .attrs = &AttrsOf<ScatterElements>::info,
    .infer = infer_elements,
    .reference = scatter_elements,
    .gradient = gradient_elements,
    .onnx = {{"ScatterElements", 11}, {"Scatter", 9}},
};

const Op ScatterND::op{
    .name = "scatter_nd",
    .attrs = &AttrsOf<ScatterND>::info,
    .infer = infer_nd,
    .reference = scatter_nd,
    .gradient = gradient_nd,
    .onnx = {{"ScatterND", 11}},
};

const Op TensorScatter::op{
    .name = "tensor_scatter",
    .attrs = &AttrsOf<TensorScatter>::info,
    .infer = infer_tensor_scatter,
    .reference = tensor_scatter,
    .onnx = {{"TensorScatter", 24}},
};

namespace ops {
void define_scatter(OpRegistry& registry) {
  for (const Op* op : {&ScatterElements::op, &ScatterND::op, &TensorScatter::op}) registry.add(*op);
}
}  // namespace ops
}  // namespace dais
