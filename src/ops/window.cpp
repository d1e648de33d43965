#include "ops/window.h"

#include <algorithm>
#include <numeric>

#include "ops/gemm_loop.h"
#include "ops/wide.h"

namespace dais {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

bool within(const std::vector<int64_t>& values, int64_t low) {
  return std::all_of(values.begin(), values.end(),
                     [&](int64_t value) { return value >= low && value < kLargest; });
}

bool parse_padding(const std::string& text, Window::Padding& out) {
  if (text.empty() || text == "NOTSET")
    out = Window::Padding::given;
  else if (text == "SAME_UPPER")
    out = Window::Padding::same_upper;
  else if (text == "SAME_LOWER")
    out = Window::Padding::same_lower;
  else if (text == "VALID")
    out = Window::Padding::valid;
  else
    return false;
  return true;
}

int64_t product_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// Steps an index over sizes in row-major order; false after the last.
bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& sizes, size_t axes) {
  for (size_t axis = axes; axis-- > 0;) {
    if (++index[axis] < sizes[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace

std::string fill_window(Window& out, const std::vector<int64_t>& kernel,
                        const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                        const std::vector<int64_t>& pads, const std::string& auto_pad, bool ceil) {
  const size_t rank = kernel.size();
  const auto listed = [&](const std::vector<int64_t>& list, size_t count, int64_t otherwise) {
    return list.empty() ? std::vector<int64_t>(count, otherwise) : list;
  };
  out = {.kernel = kernel,
         .strides = listed(strides, rank, 1),
         .dilations = listed(dilations, rank, 1),
         .pads = listed(pads, 2 * rank, 0),
         .ceil = ceil};
  if (rank == 0) return "there is no spatial axis";
  if (out.strides.size() != rank || out.dilations.size() != rank || out.pads.size() != 2 * rank)
    return "strides, dilations and pads must have one (pads two) entries for each of " +
           std::to_string(rank) + " spatial axes";
  if (!within(kernel, 1) || !within(out.strides, 1) || !within(out.dilations, 1))
    return "kernel sizes, strides and dilations must be positive";
  if (!within(out.pads, -kLargest)) return "pads are out of range";
  if (!parse_padding(auto_pad, out.padding))
    return "auto_pad '" + auto_pad + "' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID";
  return {};
}

Dim Window::positions(size_t axis, const Dim& size) const {
  // A symbolic size is taken to hold at least one window; running checks it.
  const auto counted = [&](const Dim& count) {
    return count.is_constant() ? max(count, 0) : count;
  };
  if (padding == Padding::same_upper || padding == Padding::same_lower)
    return ceildiv(size, strides[axis]);
  if (padding == Padding::valid) return counted(floordiv(size - extent(axis), strides[axis]) + 1);
  const Dim room = size + (pads[axis] + pads[rank() + axis] - extent(axis));
  if (!ceil) return counted(floordiv(room, strides[axis]) + 1);
  const Dim last_start = floordiv(size + (pads[axis] - 1), strides[axis]) + 1;
  return counted(min(ceildiv(room, strides[axis]) + 1, last_start));
}

int64_t Window::pad_begin(size_t axis, int64_t size, int64_t positions) const {
  if (padding == Padding::given) return pads[axis];
  if (padding == Padding::valid) return 0;
  const int64_t total = std::max<int64_t>((positions - 1) * strides[axis] + extent(axis) - size, 0);
  return padding == Padding::same_upper ? total / 2 : total - total / 2;
}

Taps make_taps(const Window& window, const std::vector<int64_t>& begin,
               const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
  const size_t rank = window.rank(), last = rank - 1;
  Taps taps{.list = {}, .step = window.strides[last]};
  if (product_of(out) == 0 || product_of(in) == 0) return taps;
  std::vector<int64_t> cell(rank, 0);
  int64_t number = 0;
  do {
    // Positions of the last axis whose element exists.
    const int64_t shift = cell[last] * window.dilations[last] - begin[last];
    const int64_t stride = window.strides[last];
    const int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t past = in[last] - shift;
    const int64_t high = past <= 0 ? 0 : std::min(out[last], (past + stride - 1) / stride);
    std::vector<int64_t> row(rank, 0);
    int64_t row_number = 0;
    do {
      int64_t from = 0;
      bool inside = low < high;
      for (size_t axis = 0; axis < last && inside; ++axis) {
        const int64_t at =
            row[axis] * window.strides[axis] + cell[axis] * window.dilations[axis] - begin[axis];
        inside = at >= 0 && at < in[axis];
        from = from * in[axis] + at;
      }
      if (inside) {
        const Tap next{number, row_number * out[last] + low, from * in[last] + low * stride + shift,
                       high - low};
        Tap* before = taps.list.empty() ? nullptr : &taps.list.back();
        if (before && before->kernel == number && before->out + before->count == next.out &&
            before->in + before->count * stride == next.in)
          before->count += next.count;
        else
          taps.list.push_back(next);
      }
      ++row_number;
    } while (advance(row, out, last));
    ++number;
  } while (advance(cell, window.kernel, rank));
  return taps;
}

Activation::Activation(const Shape& shape, bool channels_last) {
  batch = shape[0];
  channels = shape[channel_axis(shape.rank(), channels_last)];
  for (size_t axis = channels_last ? 1 : 2; axis < shape.rank() - (channels_last ? 1 : 0); ++axis)
    space.push_back(shape[axis]);
}

int64_t Activation::cells() const { return product_of(space); }

Shape Activation::shape(bool channels_last) const {
  Shape out{batch};
  if (!channels_last) out.push_back(channels);
  for (const int64_t size : space) out.push_back(size);
  if (channels_last) out.push_back(channels);
  return out;
}

template <typename T>
std::vector<T> in_layout(std::vector<T> values, const Activation& sizes, bool channels_last) {
  if (!channels_last) return values;
  std::vector<T> out(values.size());
  const int64_t cells = sizes.cells(), step = cells * sizes.channels;
  for (int64_t n = 0; n < sizes.batch; ++n)
    transpose_loop(sizes.channels, cells, values.data() + n * step, out.data() + n * step);
  return out;
}

template <typename T>
std::vector<T> load_channels_first(const Tensor& tensor, bool channels_last) {
  std::vector<T> values = to_wide<T>(tensor);
  if (!channels_last) return values;
  const Activation sizes(tensor.shape(), true);
  std::vector<T> out(values.size());
  const int64_t cells = sizes.cells(), step = cells * sizes.channels;
  for (int64_t n = 0; n < sizes.batch; ++n)
    transpose_loop(cells, sizes.channels, values.data() + n * step, out.data() + n * step);
  return out;
}

void store_channels_first(Tensor& to, std::vector<double> values, bool channels_last) {
  const Activation sizes(to.shape(), channels_last);
  values = in_layout(std::move(values), sizes, channels_last);
  store_wide(to, 0, values.data(), to.elements());
}

void add_channel_bias(const Call& c, const Activation& sizes, std::vector<double>& sums) {
  if (!c.has(2)) return;
  c.require(c.in(2).elements() == sizes.channels, "B must have one value per output channel");
  const WideView<double> bias(c.in(2));
  const int64_t cells = sizes.cells();
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += bias[static_cast<int64_t>(i) / cells % sizes.channels];
}

Dims activation_dims(const Dim& batch, const Dim& channels, const Dims& space, bool channels_last) {
  Dims out{batch};
  if (!channels_last) out.push_back(channels);
  out.insert(out.end(), space.begin(), space.end());
  if (channels_last) out.push_back(channels);
  return out;
}

Dims space_of(const Dims& shape, bool channels_last) {
  return channels_last ? Dims(shape.begin() + 1, shape.end() - 1)
                       : Dims(shape.begin() + 2, shape.end());
}

template std::vector<float> in_layout(std::vector<float>, const Activation&, bool);
template std::vector<double> in_layout(std::vector<double>, const Activation&, bool);
template std::vector<int64_t> in_layout(std::vector<int64_t>, const Activation&, bool);
template std::vector<float> load_channels_first(const Tensor&, bool);
template std::vector<double> load_channels_first(const Tensor&, bool);

}  // namespace dais
