#include "ops/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gradient.h"
#include "ops/pad/mapped_copy.h"
#include "ops/resize/taps.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

void check_word(const Inference& c, const std::string& given,
                std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (given == word) return;
  c.fail("'" + given + "' is not a known mode of resampling");
}

void check_attrs(const Inference& c) {
  const auto& attrs = c.attrs<Resize>();
  check_word(c, attrs.mode, {"nearest", "linear", "cubic"});
  check_word(c, attrs.coordinate_transformation_mode,
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
              "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"});
  check_word(c, attrs.nearest_mode,
             {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "by_scale"});
  check_word(c, attrs.keep_aspect_ratio_policy, {"stretch", "not_larger", "not_smaller"});
}

template <typename Context>
std::vector<size_t> resized_axes(const Context& c, const Resize& attrs, size_t rank) {
  if (!attrs.axes.empty()) return checked_axes(c, attrs.axes, rank);
  std::vector<size_t> all(rank);
  for (size_t axis = 0; axis < rank; ++axis) all[axis] = axis;
  return all;
}

/// Left-out inputs of opsets 11 and 12 are empty tensors.
bool given(const Inference& c, size_t i) {
  if (!c.has(i)) return false;
  return !c.ranked(i) || c.rank(i) != 1 || !c.shape(i)[0].is(0);
}
bool given(const Call& c, size_t i) { return c.has(i) && c.in(i).elements() > 0; }

int64_t scaled_size(int64_t size, float scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(size) * scale));
}

/// A symbolic size times a scale where that is a whole number or one over a whole number.
std::optional<Dim> scaled_dim(const Dim& size, float scale) {
  if (size.is_constant()) return scaled_size(*size.constant(), scale);
  if (scale == std::floor(scale)) return size * static_cast<int64_t>(scale);
  const float inverse = 1 / scale;
  if (inverse == std::floor(inverse) && std::exp2(std::round(std::log2(inverse))) == inverse)
    return floordiv(size, static_cast<int64_t>(inverse));
  return std::nullopt;
}

template <typename Context>
std::vector<float> checked_scales(const Context& c, const Tensor& scales, size_t count) {
  if (static_cast<size_t>(scales.elements()) != count)
    c.fail("there are " + std::to_string(scales.elements()) + " scales for " +
           std::to_string(count) + " axes");
  std::vector<float> out;
  for (int64_t i = 0; i < scales.elements(); ++i) {
    out.push_back(static_cast<float>(scales.to_double(i)));
    if (!(out.back() > 0) || out.back() > 1e6f) c.fail("a scale is out of range");
  }
  return out;
}

/// The scale common to all axes that keeps the proportions; sizes are adapted to it.
double keep_proportions(const std::string& policy, const std::vector<int64_t>& in,
                        std::vector<int64_t>& sizes) {
  double scale = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == 0) continue;
    const double ratio = static_cast<double>(sizes[i]) / static_cast<double>(in[i]);
    scale = policy == "not_larger" ? std::min(scale, ratio) : std::max(scale, ratio);
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != 0)
      sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(in[i]) + 0.5));
  return scale;
}

/// Sizes given as an input, where proportions are to be kept; nullopt while one is symbolic.
std::optional<Dims> proportional_dims(const Inference& c, const Dims& in, const Dims& wanted) {
  std::vector<int64_t> have, sizes;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].is_constant() || !wanted[i].is_constant()) return std::nullopt;
    have.push_back(*in[i].constant());
    sizes.push_back(*wanted[i].constant());
  }
  keep_proportions(c.attrs<Resize>().keep_aspect_ratio_policy, have, sizes);
  return dims_of(sizes);
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  check_attrs(c);
  Dims out = c.shape(0);
  const auto axes = resized_axes(c, c.attrs<Resize>(), out.size());
  c.require(given(c, 2) || given(c, 3), "neither scales nor sizes are given");
  Dims picked;
  for (size_t axis : axes) picked.push_back(out[axis]);
  if (given(c, 3)) {
    std::optional<Dims> sizes = c.known(3);
    if (sizes && sizes->size() != axes.size())
      c.fail("there are " + std::to_string(sizes->size()) + " sizes for " +
             std::to_string(axes.size()) + " axes");
    if (sizes && c.attrs<Resize>().keep_aspect_ratio_policy != "stretch")
      sizes = proportional_dims(c, picked, *sizes);
    for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = sizes ? (*sizes)[i] : c.fresh();
  } else {
    std::vector<float> scales;
    if (c.constant(2)) scales = checked_scales(c, *c.constant(2), axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      std::optional<Dim> size;
      if (!scales.empty()) size = scaled_dim(picked[i], scales[i]);
      out[axes[i]] = size ? *size : c.fresh();
    }
  }
  c.set(0, c.dtype(0), out);
}

void read_roi(const Call& c, const Resize& attrs, const std::vector<size_t>& axes,
              std::vector<ResizeAxis>& out) {
  if (attrs.coordinate_transformation_mode != "tf_crop_and_resize") return;
  c.require(given(c, 1) && c.in(1).elements() == 2 * std::ssize(axes),
            "tf_crop_and_resize needs a start and an end for each axis in roi");
  for (size_t i = 0; i < axes.size(); ++i) {
    out[axes[i]].roi_start = c.in(1).to_double(static_cast<int64_t>(i));
    out[axes[i]].roi_end = c.in(1).to_double(static_cast<int64_t>(axes.size() + i));
  }
}

/// `shape`: that of the data.
std::vector<ResizeAxis> plan_axes(const Call& c, const Resize& attrs, const Shape& shape) {
  const auto axes = resized_axes(c, attrs, shape.rank());
  std::vector<ResizeAxis> out;
  for (int64_t size : shape) out.push_back({size, size, 1, static_cast<double>(size)});
  read_roi(c, attrs, axes, out);
  if (!given(c, 3)) {
    const auto scales = checked_scales(c, c.in(2), axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = out[axes[i]];
      axis.scale = static_cast<double>(scales[i]);
      axis.out = scaled_size(axis.in, scales[i]);
      axis.exact_out = static_cast<double>(axis.in) * axis.scale;
    }
    return out;
  }
  auto sizes = c.in(3).to_ints();
  c.require(sizes.size() == axes.size(), "there must be one size for each axis");
  std::vector<int64_t> in;
  for (size_t axis : axes) in.push_back(shape[axis]);
  std::optional<double> common;
  if (attrs.keep_aspect_ratio_policy != "stretch")
    common = keep_proportions(attrs.keep_aspect_ratio_policy, in, sizes);
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = out[axes[i]];
    c.require(sizes[i] >= 0, "a size is negative");
    axis.out = sizes[i];
    axis.scale = common ? *common : static_cast<double>(axis.out) / static_cast<double>(axis.in);
    axis.exact_out =
        common ? *common * static_cast<double>(axis.in) : static_cast<double>(axis.out);
  }
  return out;
}

void resize_nearest(const Call& c, const std::vector<ResizeAxis>& axes, Tensor& y) {
  const auto& attrs = c.attrs<Resize>();
  IndexMaps maps;
  for (const ResizeAxis& axis : axes) {
    if (!axis.untouched(attrs)) {
      maps.push_back(nearest_indices(attrs, axis));
      continue;
    }
    maps.emplace_back();
    for (int64_t i = 0; i < axis.out; ++i) maps.back().push_back(i);
  }
  Tensor fill;
  if (attrs.extrapolation_value != 0) {
    fill = Tensor(y.dtype(), Shape{});
    visit_dtype<NumericTypes>(y.dtype(), [&]<typename T>() {
      fill.data<T>()[0] = number_cast<T>(attrs.extrapolation_value);
    });
  }
  copy_mapped(c.in(0), maps, fill, y);
}

/// One axis of an interpolation; the values of other axes stay.
std::vector<double> resample_axis(const std::vector<double>& from, const AxisTaps& taps,
                                  const ResizeAxis& axis, int64_t outer, int64_t inner,
                                  double extrapolation) {
  std::vector<double> to(static_cast<size_t>(outer * axis.out * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < axis.out; ++i) {
      double* row = to.data() + (o * axis.out + i) * inner;
      const auto at = static_cast<size_t>(i);
      if (taps.outside[at]) {
        std::fill_n(row, inner, extrapolation);
        continue;
      }
      for (size_t k = taps.first[at]; k < taps.first[at + 1]; ++k) {
        const double* source = from.data() + (o * axis.in + taps.taps[k].index) * inner;
        const double weight = taps.taps[k].weight;
        if (weight == 0) continue;
        for (int64_t j = 0; j < inner; ++j) row[j] += weight * source[j];
      }
    }
  return to;
}

void store(const std::vector<double>& values, Tensor& y) {
  visit_dtype<NumericTypes>(y.dtype(), [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      double value = values[i];
      // Cubic filters overshoot: integers stay within their range.
      if constexpr (std::is_integral_v<T>) {
        const double low = static_cast<double>(std::numeric_limits<T>::min());
        const double high = static_cast<double>(std::numeric_limits<T>::max());
        if (value <= low || value >= high) {
          y.data<T>()[i] =
              value <= low ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
          continue;
        }
      }
      y.data<T>()[i] = number_cast<T>(value);
    }
  });
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<Resize>();
  const auto axes = plan_axes(c, attrs, x.shape());
  Shape shape;
  for (const ResizeAxis& axis : axes) shape.push_back(axis.out);
  Tensor& y = c.out(0, shape);
  if (y.elements() == 0) return;
  c.require(x.elements() > 0, "there is nothing to resample from");
  if (attrs.mode == "nearest") return resize_nearest(c, axes, y);
  std::vector<double> values = to_wide<double>(x);
  Shape now = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].untouched(attrs)) continue;
    now[i] = axes[i].out;
    values = resample_axis(values, make_axis_taps(attrs, axes[i]), axes[i], now.elements(0, i),
                           now.elements(i + 1, now.rank()),
                           static_cast<double>(attrs.extrapolation_value));
  }
  store(values, y);
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto sizes = c.known(4)) return c.set(0, c.dtype(0), *sizes);
  Dims out;
  for (size_t axis = 0; axis < c.rank(0); ++axis) out.push_back(c.fresh());
  c.set(0, c.dtype(0), out);
}

/// One axis back: each element goes to where it was read from.
std::vector<double> spread_axis(const std::vector<double>& from, const AxisTaps& taps,
                                const ResizeAxis& axis, int64_t outer, int64_t inner) {
  std::vector<double> to(static_cast<size_t>(outer * axis.in * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < axis.out; ++i) {
      const double* row = from.data() + (o * axis.out + i) * inner;
      const auto at = static_cast<size_t>(i);
      if (taps.outside[at]) continue;
      for (size_t k = taps.first[at]; k < taps.first[at + 1]; ++k) {
        double* target = to.data() + (o * axis.in + taps.taps[k].index) * inner;
        for (int64_t j = 0; j < inner; ++j) target[j] += taps.taps[k].weight * row[j];
      }
    }
  return to;
}

void reference_backward(Call& c) {
  const auto& attrs = c.attrs<ResizeBackward>();
  const Shape shape(c.in(4).to_ints());
  const auto axes = plan_axes(c, attrs, shape);
  Shape now;
  for (const ResizeAxis& axis : axes) now.push_back(axis.out);
  c.require(c.in(0).shape() == now, "dy is not of the output's shape");
  std::vector<double> values = to_wide<double>(c.in(0));
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].untouched(attrs)) continue;
    values = spread_axis(values, any_axis_taps(attrs, axes[i]), axes[i], now.elements(0, i),
                         now.elements(i + 1, now.rank()));
    now[i] = axes[i].in;
  }
  store_wide(c.out(0, shape), 0, values.data(), shape.elements());
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  Values in = n.in;
  in.resize(4, nullptr);
  in[0] = dy[0];
  in.push_back(sizes_of(g, n.in[0]));
  return {g.add(ResizeBackward{*n.as<Resize>()}, in)};
}

/// What opsets before 11 mean: no centre shift, floor or ceil by the direction.
Resize old_style(const OnnxImport& x) {
  Resize attrs;
  attrs.mode = x.text("mode", "nearest");
  if (attrs.mode == "bilinear") attrs.mode = "linear";
  attrs.coordinate_transformation_mode = "asymmetric";
  attrs.nearest_mode = "by_scale";
  return attrs;
}

Value* float_list(OnnxImport& x, const std::vector<float>& values) {
  return x.constant(Tensor::of<float>(Shape{std::ssize(values)}, std::span<const float>(values)));
}

Values import_upsample_1(OnnxImport& x) {
  Value* scales = float_list(x, {1, 1, x.number("height_scale", 1), x.number("width_scale", 1)});
  return x.emit(old_style(x), {x.input(0), nullptr, scales});
}

Values import_upsample_7(OnnxImport& x) {
  return x.emit(old_style(x), {x.input(0), nullptr, float_list(x, x.numbers("scales"))});
}

/// Upsample-9 and Resize-10.
Values import_scales_input(OnnxImport& x) {
  return x.emit(old_style(x), {x.input(0), nullptr, x.input(1)});
}

}  // namespace

const Op Resize::op{
    .name = "resize",
    .attrs = &AttrsOf<Resize>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "Upsample", .since = 1, .until = 6, .import = import_upsample_1},
             {.type = "Upsample", .since = 7, .until = 8, .import = import_upsample_7},
             {.type = "Upsample", .since = 9, .import = import_scales_input},
             {.type = "Resize", .since = 10, .until = 10, .import = import_scales_input},
             {"Resize", 11}},
};

const Op ResizeBackward::op{
    .name = "resize_backward",
    .attrs = &AttrsOf<ResizeBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .onnx = {{.type = "ResizeBackward", .domain = "dais"}},
};

namespace ops {
void define_resize(OpRegistry& registry) {
  registry.add(Resize::op);
  registry.add(ResizeBackward::op);
}
}  // namespace ops
}  // namespace dais
