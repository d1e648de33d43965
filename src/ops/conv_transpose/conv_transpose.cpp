#include "ops/conv_transpose/conv_transpose.h"

#include "base/threads.h"
#include "ir/onnx_import.h"
#include "ops/wide.h"

namespace dais {
namespace {

template <typename Context>
Window window_of(const Context& c, const ConvTranspose& attrs, const std::vector<int64_t>& kernel) {
  Window window =
      make_window(c, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad);
  const size_t rank = window.rank();
  if (!attrs.output_padding.empty() && attrs.output_padding.size() != rank)
    c.fail("output_padding must have one entry for each spatial axis");
  if (!attrs.output_shape.empty() && attrs.output_shape.size() < rank)
    c.fail("output_shape must have one entry for each spatial axis");
  return window;
}

/// Halves of the padding that a wanted size implies: the odd cell goes to the end for SAME_UPPER,
/// to the beginning otherwise.
Dim begin_of(const Window& window, const Dim& total) {
  const Dim half = floordiv(total, Dim(2));
  return window.padding == Window::Padding::same_upper ? half : total - half;
}

void infer(Inference& c) {
  const auto& attrs = c.attrs<ConvTranspose>();
  c.set(0, c.dtype(0));
  const Dims &x = c.shape(0), &w = c.shape(1);
  c.require(x.size() >= 3 && w.size() == x.size(), "X and W must have the same rank of at least 3");
  c.require(attrs.group >= 1, "group must be positive");
  std::vector<int64_t> kernel = attrs.kernel_shape;
  for (size_t axis = 2; axis < w.size() && attrs.kernel_shape.empty(); ++axis) {
    if (!w[axis].is_constant()) c.fail("the kernel's size is unknown", "State kernel_shape");
    kernel.push_back(*w[axis].constant());
  }
  c.require(kernel.size() == x.size() - 2, "kernel_shape must have one entry per spatial axis");
  const Dim& channels = x[channel_axis(x.size(), attrs.channels_last)];
  if (channels.is_constant() && w[0].is_constant() && !(channels == w[0]))
    c.fail("X has " + channels.text() + " channels, but the weights are for " + w[0].text());
  const Window window = window_of(c, attrs, kernel);
  Dims space = space_of(x, attrs.channels_last);
  for (size_t axis = 0; axis < space.size(); ++axis)
    space[axis] = transposed_axis(attrs, window, axis, space[axis]).size;
  c.set(0, c.dtype(0), activation_dims(x[0], w[1] * Dim(attrs.group), space, attrs.channels_last));
}

struct Sizes {
  Activation x, y;
  int64_t group = 1, kernel_cells = 1;
  Taps taps;  // of the convolution from y to x
};

Sizes sizes_of(const Call& c, const Tensor& x, const Tensor& w) {
  const auto& attrs = c.attrs<ConvTranspose>();
  c.require(x.rank() >= 3 && w.rank() == x.rank(), "X and W must have the same rank");
  const std::vector<int64_t> kernel(w.shape().begin() + 2, w.shape().end());
  c.require(attrs.kernel_shape.empty() || attrs.kernel_shape == kernel,
            "kernel_shape does not match the weights");
  const Window window = window_of(c, attrs, kernel);
  Sizes out;
  out.x = Activation(x.shape(), attrs.channels_last);
  out.group = attrs.group;
  c.require(out.x.channels == w.shape()[0] && out.x.channels % out.group == 0,
            "the channels of X, the weights and group do not match");
  out.y.batch = out.x.batch;
  out.y.channels = w.shape()[1] * out.group;
  out.kernel_cells = w.shape().elements(2, w.rank());
  std::vector<int64_t> begin;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const TransposedAxis found = transposed_axis(attrs, window, axis, Dim(out.x.space[axis]));
    out.y.space.push_back(*found.size.constant());
    begin.push_back(*found.pad_begin.constant());
  }
  out.taps = make_taps(window, begin, out.y.space, out.x.space);
  return out;
}

template <typename T>
std::vector<double> scatter(const Sizes& s, const T* x, const T* w) {
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells(), step = s.taps.step;
  const int64_t in_channels = s.x.channels / s.group, out_channels = s.y.channels / s.group;
  std::vector<double> sums(static_cast<size_t>(s.y.batch * s.y.channels * y_cells));
  parallel_for(s.y.batch * s.y.channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t n = task / s.y.channels, channel = task % s.y.channels;
      const int64_t g = channel / out_channels, m = channel % out_channels;
      double* to = sums.data() + task * y_cells;
      for (int64_t k = g * in_channels; k < (g + 1) * in_channels; ++k) {
        const T* from = x + (n * s.x.channels + k) * x_cells;
        for (const Tap& tap : s.taps.list) {
          const auto factor =
              static_cast<double>(w[(k * out_channels + m) * s.kernel_cells + tap.kernel]);
          for (int64_t i = 0; i < tap.count; ++i)
            to[tap.in + i * step] += factor * static_cast<double>(from[tap.out + i]);
        }
      }
    }
  });
  return sums;
}

void reference(Call& c) {
  const auto& attrs = c.attrs<ConvTranspose>();
  const Tensor &x = c.in(0), &w = c.in(1);
  const Sizes sizes = sizes_of(c, x, w);
  Tensor& y = c.out(0, sizes.y.shape(attrs.channels_last));
  std::vector<double> sums;
  visit_wide(x.dtype(), [&]<typename T>() {
    const auto values = load_channels_first<T>(x, attrs.channels_last);
    const WideView<T> weights(w);
    sums = scatter(sizes, values.data(), weights.data());
  });
  add_channel_bias(c, sizes.y, sums);
  store_channels_first(y, std::move(sums), attrs.channels_last);
}

Cost cost(const Node& node) {
  const auto& w = node.in[1]->type.shape;
  const auto& x = node.in[0]->type.shape;
  if (!w || !x || w->size() < 2) return {};
  const auto each = product(*w, 1, w->size()).constant();
  const auto inputs = product(*x, 0, x->size()).constant();
  if (!each || !inputs) return {};
  return {.flops = 2 * static_cast<double>(*each) * static_cast<double>(*inputs)};
}

/// com.microsoft: X, W, Pads?, B?. The padding must be known while importing.
Values import_dynamic_pads(OnnxImport& c) {
  auto attrs = c.attrs<ConvTranspose>();
  if (c.has(2)) {
    const auto pads = c.in[2]->known();
    if (!pads) c.fail("Pads must be a constant", "Fold the model's shapes first");
    attrs.pads.clear();
    for (const Dim& pad : *pads) {
      if (!pad.is_constant()) c.fail("Pads must be a constant", "Fold the model's shapes first");
      attrs.pads.push_back(*pad.constant());
    }
  }
  return c.emit(attrs, {c.input(0), c.input(1), c.input(3)});
}

}  // namespace

TransposedAxis transposed_axis(const ConvTranspose& attrs, const Window& window, size_t axis,
                               const Dim& size) {
  const size_t rank = window.rank();
  const int64_t extra = attrs.output_padding.empty() ? 0 : attrs.output_padding[axis];
  const Dim stride = window.strides[axis];
  const Dim full = stride * (size - Dim(1)) + Dim(extra + window.extent(axis));
  if (!attrs.output_shape.empty()) {
    const Dim wanted = attrs.output_shape[attrs.output_shape.size() - rank + axis];
    return {wanted, begin_of(window, full - wanted)};
  }
  if (window.padding == Window::Padding::same_upper ||
      window.padding == Window::Padding::same_lower) {
    const Dim wanted = size * stride;
    return {wanted, begin_of(window, full - wanted)};
  }
  if (window.padding == Window::Padding::valid) return {full, Dim(0)};
  const Dim rest = full - Dim(window.pads[axis] + window.pads[rank + axis]);
  return {rest.is_constant() ? max(rest, Dim(0)) : rest, Dim(window.pads[axis])};
}

const Op ConvTranspose::op{
    .name = "conv_transpose",
    .attrs = &AttrsOf<ConvTranspose>::info,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .onnx = {{"ConvTranspose"},
             {.type = "ConvTransposeWithDynamicPads",
              .domain = "com.microsoft",
              .import = import_dynamic_pads}},
};

namespace ops {
void define_conv_transpose(OpRegistry& registry) { registry.add(ConvTranspose::op); }
}  // namespace ops
}  // namespace dais
