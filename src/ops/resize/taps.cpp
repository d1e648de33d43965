#include "ops/resize/taps.h"

#include <algorithm>
#include <cmath>

namespace dais {
namespace {

/// Where output element i lies on the input axis. Real is float for nearest neighbours, so that a
/// scale such as 1/3 lands on whole elements, and double for weights.
template <typename Real>
Real source_coordinate(const Resize& attrs, const ResizeAxis& axis, int64_t i) {
  const Real x = static_cast<Real>(i), scale = static_cast<Real>(axis.scale);
  const Real in = static_cast<Real>(axis.in), out = static_cast<Real>(axis.exact_out);
  const Real half = static_cast<Real>(0.5);
  const auto& mode = attrs.coordinate_transformation_mode;
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode == "pytorch_half_pixel") return out == 1 ? -half : (x + half) / scale - half;
  if (mode == "tf_half_pixel_for_nn") return (x + half) / scale;
  if (mode == "tf_crop_and_resize") {
    const Real start = static_cast<Real>(axis.roi_start), end = static_cast<Real>(axis.roi_end);
    if (out == 1) return half * (start + end) * (in - 1);
    return start * (in - 1) + x * (end - start) * (in - 1) / (out - 1);
  }
  Real shift = 0;
  if (mode == "half_pixel_symmetric") shift = in / 2 * (1 - static_cast<Real>(axis.out) / out);
  return shift + (x + half) / scale - half;
}

template <typename Real>
bool outside(const Resize& attrs, const ResizeAxis& axis, Real x) {
  return attrs.coordinate_transformation_mode == "tf_crop_and_resize" &&
         (x < 0 || x > static_cast<Real>(axis.in - 1));
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Appends the taps around x. A filter that reduces is widened by 1 / scale when antialiasing.
void append_taps(const Resize& attrs, const ResizeAxis& axis, double x, AxisTaps& out) {
  const bool cubic = attrs.mode == "cubic";
  const double shrink = attrs.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double base = std::ceil(x) - 1;  // the element to the left, never x itself
  // A filter wider than the axis only repeats the border.
  const double support = std::min((cubic ? 2.0 : 1.0) / shrink, 1e9);
  const auto start = static_cast<int64_t>(std::floor(-support)) + 1;
  const size_t begin = out.taps.size();
  double sum = 0;
  for (int64_t k = start; k < 2 - start; ++k) {
    const double distance = (static_cast<double>(k) - (x - base)) * shrink;
    double weight = cubic ? cubic_weight(distance, static_cast<double>(attrs.cubic_coeff_a))
                          : std::max(0.0, 1 - std::fabs(distance));
    const double at = base + static_cast<double>(k);
    if (attrs.exclude_outside && (at < 0 || at >= static_cast<double>(axis.in))) weight = 0;
    sum += weight;
    const double last = static_cast<double>(axis.in - 1);
    out.taps.push_back({static_cast<int64_t>(std::clamp(at, 0.0, last)), weight});
  }
  if ((attrs.antialias || attrs.exclude_outside) && sum != 0)
    for (size_t i = begin; i < out.taps.size(); ++i) out.taps[i].weight /= sum;
}

int64_t round_to_element(const Resize& attrs, const ResizeAxis& axis, float x) {
  const float below = std::floor(x), rest = x - below;
  const auto& mode = attrs.nearest_mode;
  bool up = rest > 0.5f;
  if (mode == "round_prefer_ceil") up = rest >= 0.5f;
  if (mode == "floor") up = false;
  if (mode == "ceil") up = rest > 0;
  if (mode == "by_scale") up = rest > 0 && axis.scale < 1;
  const double at = static_cast<double>(below) + (up ? 1 : 0);
  return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(axis.in - 1)));
}

}  // namespace

bool ResizeAxis::untouched(const Resize& attrs) const {
  const bool whole = attrs.coordinate_transformation_mode != "tf_crop_and_resize" ||
                     (roi_start == 0 && roi_end == 1);
  return in == out && scale == 1 && whole &&
         attrs.coordinate_transformation_mode != "tf_half_pixel_for_nn";
}

AxisTaps make_axis_taps(const Resize& attrs, const ResizeAxis& axis) {
  AxisTaps out;
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = source_coordinate<double>(attrs, axis, i);
    out.first.push_back(out.taps.size());
    out.outside.push_back(outside(attrs, axis, x));
    if (!out.outside.back()) append_taps(attrs, axis, x, out);
  }
  out.first.push_back(out.taps.size());
  return out;
}

std::vector<int64_t> nearest_indices(const Resize& attrs, const ResizeAxis& axis) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < axis.out; ++i) {
    const float x = source_coordinate<float>(attrs, axis, i);
    out.push_back(outside(attrs, axis, x) ? -1 : round_to_element(attrs, axis, x));
  }
  return out;
}

AxisTaps any_axis_taps(const Resize& attrs, const ResizeAxis& axis) {
  if (attrs.mode != "nearest") return make_axis_taps(attrs, axis);
  AxisTaps out;
  for (const int64_t index : nearest_indices(attrs, axis)) {
    out.first.push_back(out.taps.size());
    out.outside.push_back(index < 0);
    if (index >= 0) out.taps.push_back({index, 1});
  }
  out.first.push_back(out.taps.size());
  return out;
}

}  // namespace dais
