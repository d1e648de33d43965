#include "ops/pool/pool.h"

#include <cmath>

#include "base/threads.h"
#include "ir/onnx_import.h"
#include "ops/pool/pool_sizes.h"
#include "ops/wide.h"

namespace dais {
namespace {

template <typename S>
void infer_windows(Inference& c) {
  const auto& attrs = c.attrs<S>();
  c.set(0, c.dtype(0));
  c.set(1, DType::i64);
  const Dims& x = c.shape(0);
  c.require(x.size() >= 3, "X must have at least one spatial axis");
  const Window window = pool_window(c, attrs);
  c.require(window.rank() + 2 == x.size(), "kernel_shape must have one entry per spatial axis");
  Dims space = space_of(x, attrs.channels_last);
  for (size_t axis = 0; axis < space.size(); ++axis)
    space[axis] = window.positions(axis, space[axis]);
  const Dims out = activation_dims(x[0], x[channel_axis(x.size(), attrs.channels_last)], space,
                                   attrs.channels_last);
  c.set(0, c.dtype(0), out);
  c.set(1, DType::i64, out);
}

/// Starts every window of every plane at `start` and folds its elements in: fold(sum, element).
template <typename Fold>
std::vector<double> fold_windows(const PoolSizes& s, const std::vector<double>& x, double start,
                                 Fold&& fold) {
  const int64_t planes = s.x.batch * s.x.channels, step = s.taps.step;
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells();
  std::vector<double> out(static_cast<size_t>(planes * y_cells), start);
  parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const double* from = x.data() + plane * x_cells;
      double* to = out.data() + plane * y_cells;
      for (const Tap& tap : s.taps.list)
        for (int64_t i = 0; i < tap.count; ++i) fold(to[tap.out + i], from[tap.in + i * step]);
    }
  });
  return out;
}

/// Position in a plane with the last two spatial axes swapped.
int64_t column_major(const std::vector<int64_t>& space, int64_t cell) {
  const size_t rank = space.size();
  if (rank < 2) return cell;
  const int64_t width = space[rank - 1], height = space[rank - 2], plane = width * height;
  const int64_t within = cell % plane;
  return cell - within + within % width * height + within / width;
}

/// Maxima, and where they are, as numbers of elements in channels-first order.
template <typename T>
void max_windows(const PoolSizes& s, const std::vector<T>& x, int64_t order, std::vector<T>& out,
                 std::vector<int64_t>& indices) {
  const int64_t planes = s.x.batch * s.x.channels, step = s.taps.step;
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells();
  out.assign(static_cast<size_t>(planes * y_cells), T{});
  indices.assign(out.size(), -1);
  parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const T* from = x.data() + plane * x_cells;
      T* to = out.data() + plane * y_cells;
      int64_t* index = indices.data() + plane * y_cells;
      for (const Tap& tap : s.taps.list)
        for (int64_t i = 0; i < tap.count; ++i) {
          const int64_t cell = tap.in + i * step, position = tap.out + i;
          // Not `>`: NaN wins, so that it is seen in the result.
          if (index[position] >= 0 && (from[cell] <= to[position] || to[position] != to[position]))
            continue;
          to[position] = from[cell];
          index[position] = cell;
        }
      for (int64_t i = 0; i < y_cells; ++i) {
        if (index[i] < 0) continue;
        if (order == 1) index[i] = column_major(s.x.space, index[i]);
        index[i] += plane * x_cells;
      }
    }
  });
}

void reference_max(Call& c) {
  const auto& attrs = c.attrs<MaxPool>();
  const PoolSizes sizes = pool_sizes(c, attrs, c.in(0).shape());
  const Tensor& x = c.in(0);
  const Shape shape = sizes.y.shape(attrs.channels_last);
  Tensor& y = c.out(0, shape);
  std::vector<int64_t> indices;
  // Wide integers would not survive as double; what i64 cannot hold is not pooled in practice.
  if (is_integer(x.dtype())) {
    std::vector<int64_t> values = to_wide<int64_t>(x), out;
    if (attrs.channels_last) {
      const auto wide = load_channels_first<double>(x, true);
      values.assign(wide.begin(), wide.end());
    }
    max_windows(sizes, values, attrs.storage_order, out, indices);
    out = in_layout(std::move(out), sizes.y, attrs.channels_last);
    store_wide(y, 0, out.data(), y.elements());
  } else {
    std::vector<double> out;
    max_windows(sizes, load_channels_first<double>(x, attrs.channels_last), attrs.storage_order,
                out, indices);
    // A window that sees nothing but padding.
    for (size_t i = 0; i < out.size(); ++i)
      if (indices[i] < 0) out[i] = -INFINITY;
    store_channels_first(y, std::move(out), attrs.channels_last);
  }
  if (c.outputs() < 2) return;
  indices = in_layout(std::move(indices), sizes.y, attrs.channels_last);
  store_wide(c.out(1, DType::i64, shape), 0, indices.data(), shape.elements());
}

void reference_average(Call& c) {
  const auto& attrs = c.attrs<AveragePool>();
  const PoolSizes sizes = pool_sizes(c, attrs, c.in(0).shape());
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  auto out = fold_windows(sizes, load_channels_first<double>(c.in(0), attrs.channels_last), 0,
                          [](double& sum, double value) { sum += value; });
  const auto counts = pool_divisors(sizes, attrs.count_include_pad);
  for (size_t i = 0; i < out.size(); ++i) out[i] /= counts[i % counts.size()];
  store_channels_first(y, std::move(out), attrs.channels_last);
}

void reference_lp(Call& c) {
  const auto& attrs = c.attrs<LpPool>();
  const PoolSizes sizes = pool_sizes(c, attrs, c.in(0).shape());
  c.require(attrs.p >= 1, "p must be positive");
  const auto p = static_cast<double>(attrs.p);
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  auto out = fold_windows(sizes, load_channels_first<double>(c.in(0), attrs.channels_last), 0,
                          [p](double& sum, double value) { sum += std::pow(std::fabs(value), p); });
  for (double& value : out) value = std::pow(value, 1 / p);
  store_channels_first(y, std::move(out), attrs.channels_last);
}

/// Before version 2, LpPool's p was a float; nobody used another than a whole one.
Values import_lp(OnnxImport& c) {
  const float p = c.number("p", 2);
  for (auto& [name, value] : c.attributes)
    if (name == "p") value = static_cast<int64_t>(std::lround(p));
  return c.type == "LpPool" ? c.emit(c.attrs<LpPool>(), c.in)
                            : c.emit(c.attrs<GlobalLpPool>(), c.in);
}

template <typename S>
void infer_global(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims& x = c.shape(0);
  c.require(x.size() >= 2, "X must have a batch and a channel axis");
  const bool last = c.attrs<S>().channels_last;
  const Dims space(x.size() - 2, Dim(1));
  c.set(0, c.dtype(0), activation_dims(x[0], x[channel_axis(x.size(), last)], space, last));
}

/// Calls body(begin, cells) with each plane and stores what it gives.
template <typename Body>
void each_plane(Call& c, bool channels_last, Body&& body) {
  c.require(c.in(0).rank() >= 2, "X must have a batch and a channel axis");
  const Activation x(c.in(0).shape(), channels_last);
  const auto values = load_channels_first<double>(c.in(0), channels_last);
  const int64_t cells = x.cells(), planes = x.batch * x.channels;
  Activation sizes = x;
  sizes.space.assign(x.space.size(), 1);
  Tensor& y = c.out(0, sizes.shape(channels_last));
  std::vector<double> out(static_cast<size_t>(planes));
  for (int64_t plane = 0; plane < planes; ++plane)
    out[static_cast<size_t>(plane)] = body(values.data() + plane * cells, cells);
  // With no spatial extent both layouts are the same.
  store_wide(y, 0, out.data(), planes);
}

void reference_global_average(Call& c) {
  each_plane(c, c.attrs<GlobalAveragePool>().channels_last, [](const double* x, int64_t cells) {
    double sum = 0;
    for (int64_t i = 0; i < cells; ++i) sum += x[i];
    return sum / static_cast<double>(cells);
  });
}

void reference_global_max(Call& c) {
  each_plane(c, c.attrs<GlobalMaxPool>().channels_last, [](const double* x, int64_t cells) {
    double top = -INFINITY;
    for (int64_t i = 0; i < cells; ++i) top = x[i] <= top || top != top ? top : x[i];
    return top;
  });
}

void reference_global_lp(Call& c) {
  const auto p = static_cast<double>(c.attrs<GlobalLpPool>().p);
  c.require(p >= 1, "p must be positive");
  each_plane(c, c.attrs<GlobalLpPool>().channels_last, [p](const double* x, int64_t cells) {
    double sum = 0;
    for (int64_t i = 0; i < cells; ++i) sum += std::pow(std::fabs(x[i]), p);
    return std::pow(sum, 1 / p);
  });
}

}  // namespace

const Op MaxPool::op{
    .name = "max_pool",
    .attrs = &AttrsOf<MaxPool>::info,
    .infer = infer_windows<MaxPool>,
    .reference = reference_max,
    .gradient = gradient_max_pool,
    .onnx = {{"MaxPool"}},
};
const Op AveragePool::op{
    .name = "average_pool",
    .attrs = &AttrsOf<AveragePool>::info,
    .infer = infer_windows<AveragePool>,
    .reference = reference_average,
    .gradient = gradient_average_pool,
    .onnx = {{"AveragePool"}},
};
const Op LpPool::op{
    .name = "lp_pool",
    .attrs = &AttrsOf<LpPool>::info,
    .infer = infer_windows<LpPool>,
    .reference = reference_lp,
    .gradient = gradient_lp_pool,
    .onnx = {{"LpPool", 2}, {.type = "LpPool", .until = 1, .import = import_lp}},
};
const Op GlobalAveragePool::op{
    .name = "global_average_pool",
    .attrs = &AttrsOf<GlobalAveragePool>::info,
    .infer = infer_global<GlobalAveragePool>,
    .reference = reference_global_average,
    .gradient = gradient_global_average,
    .onnx = {{"GlobalAveragePool"}},
};
const Op GlobalMaxPool::op{
    .name = "global_max_pool",
    .attrs = &AttrsOf<GlobalMaxPool>::info,
    .infer = infer_global<GlobalMaxPool>,
    .reference = reference_global_max,
    .gradient = gradient_global_max,
    .onnx = {{"GlobalMaxPool"}},
};
const Op GlobalLpPool::op{
    .name = "global_lp_pool",
    .attrs = &AttrsOf<GlobalLpPool>::info,
    .infer = infer_global<GlobalLpPool>,
    .reference = reference_global_lp,
    .gradient = gradient_global_lp,
    .onnx = {{"GlobalLpPool", 2}, {.type = "GlobalLpPool", .until = 1, .import = import_lp}},
};

namespace ops {
void define_pool(OpRegistry& registry) {
  for (const Op* op :
       {&MaxPool::op, &MaxPoolBackward::op, &AveragePool::op, &AveragePoolBackward::op, &LpPool::op,
        &GlobalAveragePool::op, &GlobalMaxPool::op, &GlobalLpPool::op})
    registry.add(*op);
}
}  // namespace ops
}  // namespace dais
