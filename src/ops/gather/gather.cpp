#include "ops/gather/gather.h"

#include <algorithm>

#include "ir/inference.h"
#include "ops/cost.h"
#include "ops/dims.h"
#include "ops/gather/gather_backward.h"
#include "ops/gather/indices.h"
#include "ops/strided.h"

namespace dais {
namespace {

void infer_known(Inference& c) {
  const auto data = c.known(0);
  const auto indices = c.known_ints(1);
  if (!data || !indices || !c.ranked(0) || c.rank(0) != 1) return;
  const auto size = static_cast<int64_t>(data->size());
  Dims out;
  for (int64_t index : *indices) {
    if (index < -size || index >= size) return;
    out.push_back((*data)[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  c.set_known(0, std::move(out));
}

void infer_gather(Inference& c) {
  c.set(0, c.dtype(0));
  infer_known(c);
  const Dims &data = c.shape(0), &indices = c.shape(1);
  const auto axis = static_cast<std::ptrdiff_t>(c.axis(c.attrs<Gather>().axis, data.size()));
  Dims out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  c.set(0, c.dtype(0), out);
}

void gather(Call& c) {
  const Tensor& data = c.in(0);
  const size_t axis = normalize_axis(c.attrs<Gather>().axis, data.rank());
  const AxisSplit split = split_axis(data.shape(), axis);
  const auto indices = checked_indices(c, c.in(1), split.size);
  Shape shape;
  for (size_t i = 0; i < axis; ++i) shape.push_back(data.shape()[i]);
  for (int64_t size : c.in(1).shape()) shape.push_back(size);
  for (size_t i = axis + 1; i < data.rank(); ++i) shape.push_back(data.shape()[i]);
  Tensor& y = c.out(0, shape);
  if (shape.elements() == 0) return;
  visit_storage(data.dtype(), [&]<typename T>() {
    const T* from = data.storage<T>();
    T* to = y.storage<T>();
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t index : indices)
        to = std::copy_n(from + (outer * split.size + index) * split.inner, split.inner, to);
  });
}

void infer_elements(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& indices = c.shape(1);
  if (c.ranked(0)) {
    c.axis(c.attrs<GatherElements>().axis, c.rank(0));
    c.require(c.rank(0) == indices.size(), "data and indices differ in rank");
  }
  c.set(0, c.dtype(0), indices);
}

void gather_elements(Call& c) {
  const Tensor &data = c.in(0), &indices = c.in(1);
  const Shape& shape = indices.shape();
  const size_t axis = normalize_axis(c.attrs<GatherElements>().axis, data.rank());
  c.require(shape.rank() == data.rank(), "data and indices differ in rank");
  for (size_t i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] > data.shape()[i])
      c.fail("indices " + shape.text() + " are larger than data " + data.shape().text());
  const auto at = checked_indices(c, indices, data.shape()[axis]);
  Strides steps = broadcast_strides(data.shape(), data.shape());
  const Shape strides = strides_of(data.shape());
  for (size_t i = 0; i < shape.rank(); ++i) steps[i] = i == axis ? 0 : strides[i];
  Tensor& y = c.out(0, shape);
  const StridedLoop<2> loop(shape, {broadcast_strides(shape, shape), steps});
  visit_storage(data.dtype(), [&]<typename T>() {
    const T* from = data.storage<T>();
    T* to = y.storage<T>();
    loop.rows([&](const std::array<int64_t, 2>& row) {
      for (int64_t i = 0; i < loop.size(); ++i) {
        const int64_t k = row[0] + i * loop.step(0);
        to[k] = from[row[1] + i * loop.step(1) + at[static_cast<size_t>(k)] * strides[axis]];
      }
    });
  });
}

/// How many axes of data one index tuple names.
template <typename Context>
size_t tuple_size(const Context& c, size_t data_rank, size_t indices_rank, size_t batch,
                  int64_t last) {
  if (indices_rank == 0 || batch >= indices_rank || batch > data_rank)
    c.fail("batch_dims is beyond the axes of data or indices");
  if (last < 0 || last > static_cast<int64_t>(data_rank - batch))
    c.fail("index tuples of " + std::to_string(last) + " entries for data of rank " +
           std::to_string(data_rank));
  return static_cast<size_t>(last);
}

size_t checked_tuple(const Call& c, const Shape& indices, const Shape& data, size_t batch) {
  return tuple_size(c, data.rank(), indices.rank(), batch,
                    indices.rank() == 0 ? -1 : indices.back());
}

void infer_nd(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims &data = c.shape(0), &indices = c.shape(1);
  const int64_t batch = c.attrs<GatherND>().batch_dims;
  c.require(batch >= 0, "batch_dims is negative");
  if (indices.empty()) c.fail("indices are a scalar");
  if (!indices.back().is_constant()) return;
  const size_t tuple = tuple_size(c, data.size(), indices.size(), static_cast<size_t>(batch),
                                  *indices.back().constant());
  Dims out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(tuple) + batch, data.end());
  c.set(0, c.dtype(0), out);
}

void gather_nd(Call& c) {
  const Tensor &data = c.in(0), &indices = c.in(1);
  const auto batch = static_cast<size_t>(c.attrs<GatherND>().batch_dims);
  const size_t tuple = checked_tuple(c, indices.shape(), data.shape(), batch);
  Shape shape;
  for (size_t i = 0; i + 1 < indices.rank(); ++i) shape.push_back(indices.shape()[i]);
  for (size_t i = batch + tuple; i < data.rank(); ++i) shape.push_back(data.shape()[i]);
  const int64_t run = data.shape().elements(batch + tuple, data.rank());
  Tensor& y = c.out(0, shape);
  if (y.elements() == 0) return;
  const auto offsets = tuple_offsets(c, indices, data.shape(), batch);
  visit_storage(data.dtype(), [&]<typename T>() {
    T* to = y.storage<T>();
    for (int64_t offset : offsets) to = std::copy_n(data.storage<T>() + offset, run, to);
  });
}

}  // namespace

std::vector<int64_t> tuple_offsets(const Call& c, const Tensor& indices, const Shape& data,
                                   size_t batch_dims) {
  const Shape& shape = indices.shape();
  const size_t tuple =
      tuple_size(c, data.rank(), shape.rank(), batch_dims, shape.rank() == 0 ? -1 : shape.back());
  for (size_t i = 0; i < batch_dims; ++i)
    if (shape[i] != data[i]) c.fail("data and indices differ in their batch axes");
  const int64_t count = shape.elements(0, shape.rank() - 1);
  const int64_t per_batch = shape.elements(batch_dims, shape.rank() - 1);
  const int64_t batch_step = data.elements(batch_dims, data.rank());
  const Shape strides = strides_of(data);
  const auto numbers = indices.to_ints();
  std::vector<int64_t> out(static_cast<size_t>(count));
  size_t read = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = per_batch == 0 ? 0 : i / per_batch * batch_step;
    for (size_t k = 0; k < tuple; ++k)
      offset += checked_index(c, numbers[read++], data[batch_dims + k]) * strides[batch_dims + k];
    out[static_cast<size_t>(i)] = offset;
  }
  return out;
}

const Op Gather::op{
    .name = "gather",
    .attrs = &AttrsOf<Gather>::info,
    .infer = infer_gather,
    .reference = gather,
    .gradient = gradient_gather,
    .cost = cost_of_taking,
    .onnx = {{"Gather"}},
};

const Op GatherElements::op{
    .name = "gather_elements",
    .attrs = &AttrsOf<GatherElements>::info,
    .infer = infer_elements,
    .reference = gather_elements,
    .gradient = gradient_gather_elements,
    .cost = cost_of_taking,
    .onnx = {{"GatherElements", 11}},
};

const Op GatherND::op{
    .name = "gather_nd",
    .attrs = &AttrsOf<GatherND>::info,
    .infer = infer_nd,
    .reference = gather_nd,
    .gradient = gradient_gather_nd,
    .cost = cost_of_taking,
    .onnx = {{"GatherND", 11}, {.type = "GatherND", .domain = "com.microsoft"}},
};

namespace ops {
void define_gather(OpRegistry& registry) {
  for (const Op* op : {&Gather::op, &GatherElements::op, &GatherND::op, &GatherBackward::op,
                       &GatherNDBackward::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
