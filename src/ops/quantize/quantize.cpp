#include "ops/quantize/quantize.h"

#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elements.h"
#include "ops/strided.h"

namespace dais {
namespace {

/// Which scale each element has: the tensor as outer x size x inner along the axis.
struct Scales {
  AxisSplit split;
  int64_t block = 1;   ///< slices that share a scale
  int64_t blocks = 1;  ///< scales along the axis
  bool per_inner = false;

  /// Index of the scale of slice (outer, k), and the step to the next inner element's.
  int64_t first(int64_t outer, int64_t k) const {
    return per_inner ? (outer * blocks + k / block) * split.inner : k / block;
  }
  int64_t step() const { return per_inner ? 1 : 0; }
};

Scales scales_of(Call& c, const Shape& x, const Tensor& scale, int64_t axis, int64_t block_size) {
  if (scale.elements() == 1 && block_size == 0) return {.split = {1, 1, x.elements()}};
  const size_t at = normalize_axis(axis, x.rank());
  Scales out{.split = split_axis(x, at)};
  if (block_size == 0) {
    if (scale.rank() != 1 || scale.elements() != x[at])
      c.fail("scale " + scale.describe() + " does not match axis " + std::to_string(axis) +
             " of x " + x.text());
    out.blocks = x[at];
    return out;
  }
  Shape expected = x;
  expected[at] = x[at] / block_size + (x[at] % block_size != 0);
  if (scale.shape() != expected)
    c.fail("scale " + scale.describe() + " is not " + expected.text() + ", as blocks of " +
           std::to_string(block_size) + " ask for");
  return {out.split, block_size, expected[at], true};
}

void check_zero_point(Call& c, const Tensor& scale) {
  if (c.has(2) && c.in(2).elements() != scale.elements())
    c.fail("zero point " + c.in(2).describe() + " does not match scale " + scale.describe());
}

/// Calls body(first element, first scale) for every run of `inner` elements.
template <typename Body>
void for_slices(const Scales& scales, Body&& body) {
  const AxisSplit& split = scales.split;
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t k = 0; k < split.size; ++k)
      body((o * split.size + k) * split.inner, scales.first(o, k));
}

double rounded_to(DType precision, double value) {
  switch (precision) {
    case DType::f16: return static_cast<float>(Float16(static_cast<float>(value)));
    case DType::bf16: return static_cast<float>(BFloat16(static_cast<float>(value)));
    case DType::f64: return value;
    default: return static_cast<float>(value);
  }
}

void check_block(Inference& c, int64_t block_size) {
  if (block_size < 0) c.fail("block_size is " + std::to_string(block_size), "Use 1 or more");
}

void infer_quantize(Inference& c) {
  const QuantizeLinear& attrs = c.attrs<QuantizeLinear>();
  DType dtype = attrs.output_dtype;
  if (c.has(2)) {
    if (dtype != DType::undefined && dtype != c.dtype(2))
      c.fail("output_dtype is " + std::string(dtype_name(dtype)) + " but the zero point is " +
             std::string(dtype_name(c.dtype(2))));
    dtype = c.dtype(2);
  }
  if (dtype == DType::undefined) dtype = DType::u8;
  if (!is_integer(dtype) && !SmallFloatTypes::contains(dtype))
    c.fail(std::string(dtype_name(dtype)) + " is not a quantised type");
  c.set(0, dtype);
  check_block(c, attrs.block_size);
  c.set(0, dtype, c.shape(0));
}

/// Saturating conversion of a quotient plus zero point.
template <typename T>
void store_quantized(const double* from, int64_t n, bool saturate, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T> || requires { T::max; })
      to[i] = saturated<T>(from[i]);
    else if constexpr (std::is_constructible_v<T, float, bool>)
      to[i] = T(static_cast<float>(from[i]), saturate);
  }
}

template <typename T>
constexpr bool is_whole = std::is_integral_v<T> || requires {
  T::max;
};

void reference_quantize(Call& c) {
  const QuantizeLinear& attrs = c.attrs<QuantizeLinear>();
  const Tensor &x = c.in(0), &scale = c.in(1);
  Tensor& y = c.out(0, x.shape());
  check_zero_point(c, scale);
  const Scales scales = scales_of(c, x.shape(), scale, attrs.axis, attrs.block_size);
  const DType precision = attrs.precision == DType::undefined ? scale.dtype() : attrs.precision;
  const auto factors = widen<double>(scale);
  const auto zeros = c.has(2) ? widen<double>(c.in(2)) : std::vector<double>(factors.size(), 0);
  std::vector<double> values(static_cast<size_t>(scales.split.inner));
  visit_dtype<AllTypes>(y.dtype(), [&]<typename T>() {
    for_slices(scales, [&](int64_t first, int64_t at) {
      load_elements(x, first, 1, scales.split.inner, values.data());
      for (double& value : values) {
        value = rounded_to(precision, value / factors[static_cast<size_t>(at)]);
        if (is_whole<T>) value = std::nearbyint(value);
        value += zeros[static_cast<size_t>(at)];
        at += scales.step();
      }
      if constexpr (!std::is_same_v<T, std::string>)
        store_quantized(values.data(), scales.split.inner, attrs.saturate,
                        y.data<T>().data() + first);
    });
  });
}

void infer_dequantize(Inference& c) {
  const DequantizeLinear& attrs = c.attrs<DequantizeLinear>();
  const DType dtype = attrs.output_dtype == DType::undefined ? c.dtype(1) : attrs.output_dtype;
  if (!is_float(dtype)) c.fail(std::string(dtype_name(dtype)) + " is not a float type");
  if (c.has(2) && c.dtype(2) != c.dtype(0))
    c.fail("x is " + std::string(dtype_name(c.dtype(0))) + " but the zero point is " +
           std::string(dtype_name(c.dtype(2))));
  c.set(0, dtype);
  check_block(c, attrs.block_size);
  c.set(0, dtype, c.shape(0));
}

void reference_dequantize(Call& c) {
  const DequantizeLinear& attrs = c.attrs<DequantizeLinear>();
  const Tensor &x = c.in(0), &scale = c.in(1);
  Tensor& y = c.out(0, x.shape());
  check_zero_point(c, scale);
  const Scales scales = scales_of(c, x.shape(), scale, attrs.axis, attrs.block_size);
  const auto factors = widen<double>(scale);
  const auto zeros = c.has(2) ? widen<double>(c.in(2)) : std::vector<double>(factors.size(), 0);
  std::vector<double> values(static_cast<size_t>(scales.split.inner));
  for_slices(scales, [&](int64_t first, int64_t at) {
    load_elements(x, first, 1, scales.split.inner, values.data());
    for (double& value : values) {
      value = (value - zeros[static_cast<size_t>(at)]) * factors[static_cast<size_t>(at)];
      at += scales.step();
    }
    store_elements(y, first, 1, scales.split.inner, values.data());
  });
}

void infer_dynamic(Inference& c) {
  // f64 is ours: truths are computed in it.
  const DType dtype = c.dtype(0);
  if (dtype != DType::f32 && dtype != DType::f64)
    c.fail("x is " + std::string(dtype_name(dtype)) + ", not f32");
  c.set(0, DType::u8);
  c.set(1, dtype, {});
  c.set(2, DType::u8, {});
  c.set(0, DType::u8, c.shape(0));
}

template <typename T>
void quantize_dynamically(Call& c) {
  const auto x = c.in(0).data<T>();
  T low = 0, high = 0;
  for (const T value : x) {
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
  const T scale = (high - low) / 255;
  // All zeros: any scale does; a zero one would divide zero by zero.
  const T divisor = scale == 0 ? 1 : scale;
  const auto zero = saturated<uint8_t>(std::nearbyint(-low / divisor));
  Tensor& y = c.out(0, c.in(0).shape());
  for (size_t i = 0; i < x.size(); ++i)
    y.data<uint8_t>()[i] = saturated<uint8_t>(std::nearbyint(x[i] / divisor) + zero);
  if (c.outputs() > 1) c.out(1, Shape{}).data<T>()[0] = scale;
  if (c.outputs() > 2) c.out(2, Shape{}).data<uint8_t>()[0] = zero;
}

void reference_dynamic(Call& c) {
  c.in(0).dtype() == DType::f64 ? quantize_dynamically<double>(c) : quantize_dynamically<float>(c);
}

}  // namespace

const Op QuantizeLinear::op{
    .name = "quantize_linear",
    .attrs = &AttrsOf<QuantizeLinear>::info,
    .infer = infer_quantize,
    .reference = reference_quantize,
    .onnx = {{"QuantizeLinear", 10}, {.type = "QuantizeLinear", .domain = "com.microsoft"}},
};

const Op DequantizeLinear::op{
    .name = "dequantize_linear",
    .attrs = &AttrsOf<DequantizeLinear>::info,
    .infer = infer_dequantize,
    .reference = reference_dequantize,
    .onnx = {{"DequantizeLinear", 10}, {.type = "DequantizeLinear", .domain = "com.microsoft"}},
};

const Op DynamicQuantizeLinear::op{
    .name = "dynamic_quantize_linear",
    .attrs = &AttrsOf<DynamicQuantizeLinear>::info,
    .infer = infer_dynamic,
    .reference = reference_dynamic,
    .onnx = {{"DynamicQuantizeLinear", 11}},
};

namespace ops {
void define_quantize(OpRegistry& registry) {
  registry.add(QuantizeLinear::op);
  registry.add(DequantizeLinear::op);
  registry.add(DynamicQuantizeLinear::op);
}
}  // namespace ops
}  // namespace dais
