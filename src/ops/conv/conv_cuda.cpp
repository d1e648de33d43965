// Convolutions, their gradients and transposed convolutions as products whose columns are computed,
// never stored (product.cu).
#include "ops/conv/causal_cuda.h"
#include "ops/conv/conv.h"
#include "ops/conv/library_cuda.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/fused/fused.h"
#include "ops/matmul/byte_cuda.h"

namespace dais {
namespace {

constexpr size_t kMostSpatial = 3;

/// The shapes of one convolution: of its input, weights and output.
struct Conv3 {
  Shape x, w, y;
};

template <typename Attrs>
std::optional<Window> window_of(const Attrs& attrs, const Shape& w) {
  Window out;
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  if (!fill_window(out, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad, false)
           .empty())
    return std::nullopt;
  return out;
}

/// Fills in all that the modes share; `begin` gives the padding before each axis.
template <typename Begin>
std::optional<ProductProblem> geometry(const Conv3& shapes, const Window& window, int64_t group,
                                       Begin&& begin) {
  const size_t spatial = shapes.x.rank() - 2;
  if (spatial > kMostSpatial || shapes.w.rank() != shapes.x.rank() ||
      shapes.y.rank() != shapes.x.rank())
    return std::nullopt;
  ProductProblem p;
  p.group = static_cast<int32_t>(group);
  const size_t lead = kMostSpatial - spatial;
  for (size_t axis = 0; axis < spatial; ++axis) {
    const size_t at = lead + axis;
    p.in[at] = static_cast<int32_t>(shapes.x[2 + axis]);
    p.out[at] = static_cast<int32_t>(shapes.y[2 + axis]);
    p.window[at] = static_cast<int32_t>(window.kernel[axis]);
    p.stride[at] = static_cast<int32_t>(window.strides[axis]);
    p.dilation[at] = static_cast<int32_t>(window.dilations[axis]);
    p.pad[at] = static_cast<int32_t>(begin(axis));
  }
  constexpr int64_t kMost = (int64_t{1} << 31) - 64;
  const int64_t taps = shapes.w.elements(2, shapes.w.rank());
  const int64_t in_cells = shapes.x.elements(2, shapes.x.rank());
  const int64_t out_cells = shapes.y.elements(2, shapes.y.rank());
  if (in_cells >= kMost || out_cells >= kMost || taps * shapes.w[1] >= kMost ||
      shapes.x[0] * out_cells >= kMost || shapes.w[0] * taps >= kMost)
    return std::nullopt;
  p.taps = static_cast<int32_t>(taps);
  p.in_cells = static_cast<int32_t>(in_cells);
  p.out_cells = static_cast<int32_t>(out_cells);
  p.channels = static_cast<int32_t>(shapes.w[1]);
  return p;
}

template <typename Attrs>
std::optional<ProductProblem> forward_geometry(const Attrs& attrs, const Conv3& shapes) {
  const auto window = window_of(attrs, shapes.w);
  if (!window) return std::nullopt;
  return geometry(shapes, *window, attrs.group, [&](size_t axis) {
    return window->pad_begin(axis, shapes.x[2 + axis], shapes.y[2 + axis]);
  });
}

/// y[n, g] = W[g] * columns of x[n, g].
ProductCall forward(ProductProblem p, const Conv3& shapes) {
  p.rows = static_cast<int32_t>(shapes.w[0] / p.group);
  p.columns = p.out_cells;
  p.depth = p.channels * p.taps;
  p.columns_first_b = 1;
  return {p, shapes.x[0] * p.group};
}

/// dx[n, g] = turned W[g] * what of dy[n, g] each cell went to.
ProductCall backward_data(ProductProblem p, const Conv3& shapes) {
  p.rows = p.channels;
  p.columns = p.in_cells;
  p.depth = static_cast<int32_t>(shapes.w[0] / p.group) * p.taps;
  p.columns_first_b = 1;
  return {p, shapes.x[0] * p.group};
}

/// dW[g] = dy[g] * turned columns of x[g], over all images.
ProductCall backward_weights(ProductProblem p, const Conv3& shapes) {
  p.rows = static_cast<int32_t>(shapes.w[0] / p.group);
  p.columns = p.channels * p.taps;
  p.depth = static_cast<int32_t>(shapes.x[0]) * p.out_cells;
  return {p, p.group};
}

template <typename Attrs>
ProductForm forward_form(const Attrs& attrs, size_t w, size_t spatial) {
  return {ProductMode::conv, w, 0,
          [&attrs](const Shape& w, const Shape& x, const Shape& y) -> std::optional<ProductCall> {
            const Conv3 shapes{x, w, y};
            const auto p = forward_geometry(attrs, shapes);
            if (!p) return std::nullopt;
            return forward(*p, shapes);
          },
          spatial};
}

ProductForm form_of(const Conv& attrs, size_t spatial) { return forward_form(attrs, 1, spatial); }

ProductForm form_of(const ConvBackwardData& attrs, size_t spatial) {
  return {ProductMode::conv_data, 1, 0,
          [&attrs](const Shape& w, const Shape& dy, const Shape& x) -> std::optional<ProductCall> {
            const Conv3 shapes{x, w, dy};
            const auto p = forward_geometry(attrs, shapes);
            if (!p) return std::nullopt;
            return backward_data(*p, shapes);
          },
          spatial};
}

ProductForm form_of(const ConvBackwardWeights& attrs, size_t spatial) {
  return {ProductMode::conv_weights, 1, 0,
          [&attrs](const Shape& dy, const Shape& x, const Shape& w) -> std::optional<ProductCall> {
            const Conv3 shapes{x, w, dy};
            const auto p = forward_geometry(attrs, shapes);
            if (!p) return std::nullopt;
            return backward_weights(*p, shapes);
          },
          spatial};
}

/// Its input is what the gradient calls dy.
ProductForm form_of(const ConvTranspose& attrs, size_t spatial) {
  return {ProductMode::conv_data, 1, 0,
          [&attrs](const Shape& w, const Shape& x, const Shape& y) -> std::optional<ProductCall> {
            const Conv3 shapes{y, w, x};
            const auto window = window_of(attrs, w);
            if (!window) return std::nullopt;
            const auto p = geometry(shapes, *window, attrs.group, [&](size_t axis) {
              return *transposed_axis(attrs, *window, axis, Dim(x[2 + axis])).pad_begin.constant();
            });
            if (!p) return std::nullopt;
            return backward_data(*p, shapes);
          },
          spatial};
}

template <typename Struct>
const Struct* attrs_of(const Node& node) {
  return product_of(node).as<Struct>();
}

template <typename Struct>
Verdict accepts(const KernelQuery& query) {
  const auto* attrs = attrs_of<Struct>(query.node);
  if (!attrs) return no("holds no convolution of this kind");
  if (attrs->channels_last) return no("channels come last");
  const Type& type = product_of(query.node).outs[0]->type;
  if (!type.ranked() || type.shape->size() < 3) return no("a rank is unknown");
  const size_t spatial = type.shape->size() - 2;
  if (spatial > kMostSpatial) return no("more than three spatial axes");
  if (!is_float(type.dtype)) return no("element type");
  return accepts_product(query, form_of(*attrs, spatial));
}

template <typename Struct>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const size_t spatial = product_of(query.node).outs[0]->type.shape->size() - 2;
  return prepare_product(query, form_of(*attrs_of<Struct>(query.node), spatial));
}

/// The weights are A: their zero points and scales may be one for each output channel.
ProductForm byte_form(const Node& node, size_t spatial) {
  if (const auto* conv = node.as<ConvInteger>()) return forward_form(*conv, 1, spatial);
  return forward_form(*node.as<QLinearConv>(), 3, spatial);
}
ByteOperands bytes_of(const Node& node) {
  const auto given = [&](int i) { return node.has(static_cast<size_t>(i)) ? i : -1; };
  if (node.as<ConvInteger>()) return {.a_zero = given(3), .b_zero = given(2)};
  return {.a_zero = 5,
          .b_zero = 2,
          .a_scale = 4,
          .b_scale = 1,
          .y_scale = 6,
          .y_zero = 7,
          .bias = given(8)};
}

template <typename Struct>
Verdict accepts_byte_conv(const KernelQuery& query) {
  if (query.attrs<Struct>().channels_last) return no("channels come last");
  if (!query.in(0).ranked()) return no("a rank is unknown");
  const size_t rank = query.in(0).shape->size();
  if (rank < 3 || rank > kMostSpatial + 2) return no("more than three spatial axes");
  return accepts_bytes(query, byte_form(query.node, rank - 2), bytes_of(query.node));
}

std::unique_ptr<Kernel> prepare_byte_conv(const KernelQuery& query) {
  return prepare_bytes(query, byte_form(query.node, query.in(0).shape->size() - 2),
                       bytes_of(query.node));
}

std::unique_ptr<Kernel> prepare_conv_by_library(const KernelQuery& query) {
  return prepare_library_conv(query, prepare<Conv>(query));
}

/// cuDNN's rows take what the own ones take, which stand in where it has no engine.
Verdict accepts_conv_by_library(const KernelQuery& query) {
  if (const Verdict library = accepts_library_conv(query); !library) return library;
  return accepts<Conv>(query);
}

template <typename Struct>
void add_row(Kernels& kernels, const char* name, const Op& op) {
  kernels.add({.name = name, .op = &op, .accepts = accepts<Struct>, .prepare = prepare<Struct>});
}

}  // namespace

namespace ops {

void register_conv_cuda(Kernels& kernels) {
  for (const Op* op : {&Conv::op, &Fused::op})
    kernels.add({.name = "conv/cudnn",
                 .op = op,
                 .accepts = accepts_conv_by_library,
                 .prepare = prepare_conv_by_library,
                 .priority = 1});
  add_row<Conv>(kernels, "conv/cuda", Conv::op);
  add_row<Conv>(kernels, "conv/cuda", Fused::op);
  add_row<ConvTranspose>(kernels, "conv_transpose/cuda", ConvTranspose::op);
  add_row<ConvTranspose>(kernels, "conv_transpose/cuda", Fused::op);
  add_row<ConvBackwardData>(kernels, "conv_data/cuda", ConvBackwardData::op);
  kernels.add({.name = "conv_bytes/cuda",
               .op = &ConvInteger::op,
               .accepts = accepts_byte_conv<ConvInteger>,
               .prepare = prepare_byte_conv});
  kernels.add({.name = "conv_bytes/cuda",
               .op = &QLinearConv::op,
               .accepts = accepts_byte_conv<QLinearConv>,
               .prepare = prepare_byte_conv});
  add_row<ConvBackwardWeights>(kernels, "conv_weights/cuda", ConvBackwardWeights::op);
  register_causal_cuda(kernels);
}

}  // namespace ops
}  // namespace dais
