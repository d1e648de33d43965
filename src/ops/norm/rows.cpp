// Normalisation along trailing axes or chosen axes: rows of elements and what they share.
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/elementwise/elementwise.h"
#include "ops/norm/moments.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_gradient.h"
#include "ops/parts.h"
#include "ops/reduce/reduce.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// Y like X; the other outputs keep normalised axes as 1.
template <typename S>
void infer_rows(Inference& c) {
  const auto& attrs = c.attrs<S>();
  c.set(0, c.dtype(0));
  c.set(1, attrs.stash_type);
  c.set(2, attrs.stash_type);
  Dims shape = c.shape(0);
  c.require(!shape.empty(), "X must have at least one axis");
  c.set(0, c.dtype(0), shape);
  for (size_t axis = c.axis(attrs.axis, shape.size()); axis < shape.size(); ++axis) shape[axis] = 1;
  c.set(1, attrs.stash_type, shape);
  c.set(2, attrs.stash_type, shape);
}

struct Rows {
  int64_t count = 0, size = 0;
  Shape kept;  ///< X's shape with normalised axes as 1
};

Rows rows_of(const Call& c, int64_t axis) {
  const Shape& shape = c.in(0).shape();
  c.require(shape.rank() > 0, "X must have at least one axis");
  const size_t first = normalize_axis(axis, shape.rank());
  Rows out{shape.elements(0, first), shape.elements(first, shape.rank()), shape};
  for (size_t i = first; i < shape.rank(); ++i) out.kept[i] = 1;
  return out;
}

/// values *= scale and += bias, both broadcast to X's shape.
void scale_and_shift(const Call& c, std::vector<double>& values) {
  const Shape& shape = c.in(0).shape();
  const auto strides = [&](size_t i) {
    if (!c.has(i)) return Strides{};
    c.require(broadcast(shape, c.in(i).shape()) == shape, "Scale and B must broadcast to X");
    return broadcast_strides(c.in(i).shape(), shape);
  };
  const bool shift = c.has(2);
  const WideView<double> scale(c.in(1)), bias(c.in(shift ? 2 : 1));
  const StridedLoop<2> loop(shape, {strides(1), strides(2)});
  double* to = values.data();
  loop.rows([&](const std::array<int64_t, 2>& at) {
    for (int64_t i = 0; i < loop.size(); ++i, ++to) {
      *to *= scale[at[0] + i * loop.step(0)];
      if (shift) *to += bias[at[1] + i * loop.step(1)];
    }
  });
}

void store_rows(Call& c, size_t i, const Rows& rows, const std::vector<double>& values) {
  if (i < c.outputs()) store_wide(c.out(i, rows.kept), 0, values.data(), std::ssize(values));
}

void reference_layer(Call& c) {
  const auto& attrs = c.attrs<LayerNormalization>();
  const Tensor& x = c.in(0);
  const Rows rows = rows_of(c, attrs.axis);
  std::vector<double> values = to_wide<double>(x);
  std::vector<double> means(static_cast<size_t>(rows.count)), inverses = means;
  for (int64_t row = 0; row < rows.count; ++row) {
    double* line = values.data() + row * rows.size;
    const Moments moments = moments_of(line, rows.size);
    const double inverse = 1 / std::sqrt(moments.variance + static_cast<double>(attrs.epsilon));
    for (int64_t i = 0; i < rows.size; ++i) line[i] = (line[i] - moments.mean) * inverse;
    means[static_cast<size_t>(row)] = moments.mean;
    inverses[static_cast<size_t>(row)] = inverse;
  }
  scale_and_shift(c, values);
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
  store_rows(c, 1, rows, means);
  store_rows(c, 2, rows, inverses);
}

void reference_rms(Call& c) {
  const auto& attrs = c.attrs<RMSNormalization>();
  const Tensor& x = c.in(0);
  const Rows rows = rows_of(c, attrs.axis);
  std::vector<double> values = to_wide<double>(x);
  std::vector<double> inverses(static_cast<size_t>(rows.count));
  for (int64_t row = 0; row < rows.count; ++row) {
    double* line = values.data() + row * rows.size;
    double squares = 0;
    for (int64_t i = 0; i < rows.size; ++i) squares += line[i] * line[i];
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(rows.size) +
                                         static_cast<double>(attrs.epsilon));
    for (int64_t i = 0; i < rows.size; ++i) line[i] *= inverse;
    inverses[static_cast<size_t>(row)] = inverse;
  }
  scale_and_shift(c, values);
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
  store_rows(c, 1, rows, inverses);
}

void infer_lp(Inference& c) {
  const auto& attrs = c.attrs<LpNormalization>();
  c.set(0, c.dtype(0));
  if (attrs.p != 1 && attrs.p != 2)
    c.fail("p is " + std::to_string(attrs.p), "Only the norms 1 and 2 are defined");
  c.axis(attrs.axis, c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference_lp(Call& c) {
  const auto& attrs = c.attrs<LpNormalization>();
  const Tensor& x = c.in(0);
  const AxisSplit split = split_axis(x.shape(), normalize_axis(attrs.axis, x.rank()));
  std::vector<double> values = to_wide<double>(x);
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t i = 0; i < split.inner; ++i) {
      double* line = values.data() + o * split.size * split.inner + i;
      double sum = 0;
      for (int64_t k = 0; k < split.size; ++k) {
        const double value = line[k * split.inner];
        sum += attrs.p == 1 ? std::fabs(value) : value * value;
      }
      const double norm = attrs.p == 1 ? sum : std::sqrt(sum);
      for (int64_t k = 0; k < split.size && norm != 0; ++k) line[k * split.inner] /= norm;
    }
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
}

void infer_mean_variance(Inference& c) {
  c.set(0, c.dtype(0));
  checked_axes(c, c.attrs<MeanVarianceNormalization>().axes, c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

void reference_mean_variance(Call& c) {
  const auto& attrs = c.attrs<MeanVarianceNormalization>();
  const Tensor& x = c.in(0);
  Shape kept = x.shape();
  for (const size_t axis : checked_axes(c, attrs.axes, x.rank())) kept[axis] = 1;
  std::vector<double> values = to_wide<double>(x);
  std::vector<double> sums(static_cast<size_t>(kept.elements()), 0.0), spreads = sums;
  const double count =
      sums.empty() ? 1 : static_cast<double>(x.elements()) / static_cast<double>(std::ssize(sums));
  const StridedLoop<1> loop(x.shape(), {broadcast_strides(kept, x.shape())});
  const auto each = [&](auto&& body) {
    double* value = values.data();
    loop.rows([&](const std::array<int64_t, 1>& at) {
      for (int64_t i = 0; i < loop.size(); ++i)
        body(*value++, static_cast<size_t>(at[0] + i * loop.step(0)));
    });
  };
  each([&](double value, size_t at) { sums[at] += value; });
  for (double& sum : sums) sum /= count;
  each([&](double& value, size_t at) {
    value -= sums[at];
    spreads[at] += value * value;
  });
  if (attrs.normalize_variance)
    each([&](double& value, size_t at) { value /= std::sqrt(spreads[at] / count) + 1e-9; });
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
}

/// In f32 at least, like the reference.
Values decompose_rms(Graph& graph, const Node& node) {
  const auto& attrs = *node.as<RMSNormalization>();
  Value *x = node.in[0], *scale = node.in[1];
  if (!x->type.shape || x->type.shape->empty()) return {};
  const size_t rank = x->type.shape->size();
  std::vector<int64_t> axes;
  for (size_t axis = normalize_axis(attrs.axis, rank); axis < rank; ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  const DType dtype = wide_type(*x);
  Value* wide = as_type(graph, x, dtype);
  Value* squares = graph.add(Mul{}, {wide, wide});
  Value* mean = graph.add(ReduceMean{}, {squares, graph.add_constant(Tensor::ints(axes))});
  Value* epsilon = add_scalar(graph, static_cast<double>(attrs.epsilon), dtype);
  Value* root = graph.add(Sqrt{}, {graph.add(Add{}, {mean, epsilon})});
  Value* y = graph.add(Mul{}, {graph.add(Div{}, {wide, root}), as_type(graph, scale, dtype)});
  Values out{as_type(graph, y, x->type.dtype)};
  if (node.outs.size() > 1)
    out.push_back(as_type(graph, graph.add(Reciprocal{}, {root}), attrs.stash_type));
  return out;
}

/// Version 1 named what to average over by a flag.
Values import_old_mean_variance(OnnxImport& c) {
  auto attrs = c.attrs<MeanVarianceNormalization>();
  attrs.axes = {2, 3};
  if (c.integer("across_channels", 0) != 0) attrs.axes.insert(attrs.axes.begin(), 1);
  return c.emit(attrs, c.in);
}

/// Older exporters wrote these operators before they were standard; the axis may be left out.
Values import_simplified(OnnxImport& c) {
  const auto attrs = c.attrs<RMSNormalization>();
  // Some exporters leave a place for a mean that is never computed.
  Values out = c.emit(attrs, {c.input(0), c.input(1)}, c.outputs > 1 ? 2 : 1);
  if (c.outputs == 3) return {out[0], nullptr, out[1]};
  return out;
}

}  // namespace

const Op LayerNormalization::op{
    .name = "layer_normalization",
    .attrs = &AttrsOf<LayerNormalization>::info,
    .infer = infer_rows<LayerNormalization>,
    .reference = reference_layer,
    .gradient = gradient_layer_norm,
    .onnx = {{"LayerNormalization"}, {.type = "LayerNormalization", .domain = "com.microsoft"}},
};
const Op RMSNormalization::op{
    .name = "rms_normalization",
    .attrs = &AttrsOf<RMSNormalization>::info,
    .infer = infer_rows<RMSNormalization>,
    .reference = reference_rms,
    .decompose = decompose_rms,
    .gradient = gradient_rms_norm,
    .onnx = {{"RMSNormalization", 23},
             {.type = "SimplifiedLayerNormalization", .import = import_simplified},
             {.type = "SimplifiedLayerNormalization",
              .domain = "com.microsoft",
              .import = import_simplified}},
};
const Op LpNormalization::op{
    .name = "lp_normalization",
    .attrs = &AttrsOf<LpNormalization>::info,
    .infer = infer_lp,
    .reference = reference_lp,
    .gradient = gradient_lp_norm,
    .onnx = {{"LpNormalization"}},
};
const Op MeanVarianceNormalization::op{
    .name = "mean_variance_normalization",
    .attrs = &AttrsOf<MeanVarianceNormalization>::info,
    .infer = infer_mean_variance,
    .reference = reference_mean_variance,
    .gradient = gradient_mean_variance,
    .onnx = {{"MeanVarianceNormalization", 9},
             {.type = "MeanVarianceNormalization", .until = 8, .import = import_old_mean_variance}},
};

}  // namespace dais
