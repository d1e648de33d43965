#include "ops/conv_transpose/conv_transpose.h"

#include "ir/onnx_import.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_loop.h"
#include "ops/gradient.h"
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

/// Sizes of the convolution from the output back to the input.
ConvSizes sizes_of(const Call& c, const Tensor& x, const Tensor& w) {
  const auto& attrs = c.attrs<ConvTranspose>();
  c.require(x.rank() >= 3 && w.rank() == x.rank(), "X and W must have the same rank");
  const std::vector<int64_t> kernel(w.shape().begin() + 2, w.shape().end());
  c.require(attrs.kernel_shape.empty() || attrs.kernel_shape == kernel,
            "kernel_shape does not match the weights");
  const Window window = window_of(c, attrs, kernel);
  ConvSizes out;
  out.y = Activation(x.shape(), attrs.channels_last);
  out.group = attrs.group;
  c.require(out.y.channels == w.shape()[0] && out.y.channels % out.group == 0,
            "the channels of X, the weights and group do not match");
  out.x.batch = out.y.batch;
  out.x.channels = w.shape()[1] * out.group;
  out.kernel_cells = w.shape().elements(2, w.rank());
  std::vector<int64_t> begin;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const TransposedAxis found = transposed_axis(attrs, window, axis, Dim(out.y.space[axis]));
    out.x.space.push_back(*found.size.constant());
    begin.push_back(*found.pad_begin.constant());
  }
  out.taps = make_taps(window, begin, out.x.space, out.y.space);
  return out;
}

void reference(Call& c) {
  const auto& attrs = c.attrs<ConvTranspose>();
  const Tensor &x = c.in(0), &w = c.in(1);
  const ConvSizes sizes = sizes_of(c, x, w);
  Tensor& y = c.out(0, sizes.x.shape(attrs.channels_last));
  std::vector<double> sums;
  visit_wide(x.dtype(), [&]<typename T>() {
    const auto values = load_channels_first<T>(x, attrs.channels_last);
    const WideView<T> weights(w);
    sums = conv_data_loop(sizes, values.data(), weights.data());
  });
  add_channel_bias(c, sizes.x, sums);
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

/// The convolution whose gradient with respect to its input this is, with explicit padding.
Conv forward_of(const Node& n) {
  const auto& attrs = *n.as<ConvTranspose>();
  const size_t rank = rank_for_gradient(n, n.in[1]) - 2;
  std::vector<int64_t> kernel;
  for (size_t axis = 0; axis < rank; ++axis) {
    const Dim& size = (*n.in[1]->type.shape)[axis + 2];
    if (!size.is_constant()) no_gradient(n, "the kernel's size is not known");
    kernel.push_back(*size.constant());
  }
  Window window;
  fill_window(window, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad, false);
  const Dims x = space_of(*n.in[0]->type.shape, attrs.channels_last);
  Conv out{.dilations = attrs.dilations,
           .kernel_shape = kernel,
           .pads = window.pads,
           .strides = attrs.strides,
           .group = attrs.group,
           .channels_last = attrs.channels_last};
  const bool given = window.padding == Window::Padding::given && attrs.output_shape.empty();
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t stride = window.strides[axis];
    if (given) {
      const int64_t extra = attrs.output_padding.empty() ? 0 : attrs.output_padding[axis];
      if (extra >= stride) out.pads[rank + axis] -= extra;
      continue;
    }
    const TransposedAxis found = transposed_axis(attrs, window, axis, x[axis]);
    const Dim end =
        Dim(stride) * (x[axis] - 1) + Dim(window.extent(axis)) - found.size - found.pad_begin;
    if (!end.is_constant() || !found.pad_begin.is_constant())
      no_gradient(n, "its padding depends on sizes that are not known", "State the pads");
    out.pads[axis] = *found.pad_begin.constant();
    out.pads[rank + axis] = *end.constant();
  }
  return out;
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const Conv attrs = forward_of(n);
  Values out{g.add(attrs, {dy[0], n.in[1]}),
             g.add(same_window<ConvBackwardWeights>(attrs), {dy[0], n.in[0]})};
  if (n.has(2)) out.push_back(sum_to_channels(g, dy[0], attrs.channels_last));
  return out;
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
    .gradient = gradient,
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
