#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ops/roi_align/roi_align.h"

namespace dais {

/// One bilinear sample: four elements of a plane.
struct BoxSample {
  std::array<int64_t, 4> at{};
  std::array<double, 4> weight{};
};

/// Lower neighbour, upper neighbour and distance along one axis.
struct Neighbours {
  int64_t low, high;
  double rest;
};

inline Neighbours neighbours(double x, int64_t size) {
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  if (low >= size - 1) return {size - 1, size - 1, 0};
  return {low, low + 1, x - static_cast<double>(low)};
}

inline BoxSample make_sample(double y, double x, int64_t height, int64_t width) {
  BoxSample out;
  // Far outside the plane a sample is zero.
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return out;
  const Neighbours v = neighbours(y, height), h = neighbours(x, width);
  out.at = {v.low * width + h.low, v.low * width + h.high, v.high * width + h.low,
            v.high * width + h.high};
  out.weight = {(1 - v.rest) * (1 - h.rest), (1 - v.rest) * h.rest, v.rest * (1 - h.rest),
                v.rest * h.rest};
  return out;
}

/// Where the samples of a box's bins lie.
struct BoxGrid {
  static constexpr int64_t kMaxGrid = 1 << 14, kMaxSamples = 1 << 26;

  double left, top, bin_wide, bin_high;
  int64_t rows, columns;  ///< samples of each bin

  /// Of a box of the corners x0, y0, x1, y1; nothing when it asks for more than kMaxSamples.
  static std::optional<BoxGrid> of(const RoiAlign& attrs, const double* corners) {
    const bool half = attrs.coordinate_transformation_mode == "half_pixel";
    const double scale = static_cast<double>(attrs.spatial_scale), shift = half ? 0.5 : 0;
    BoxGrid out{};
    out.left = corners[0] * scale - shift;
    out.top = corners[1] * scale - shift;
    double wide = corners[2] * scale - shift - out.left;
    double high = corners[3] * scale - shift - out.top;
    if (!half) {
      wide = std::max(wide, 1.0);
      high = std::max(high, 1.0);
    }
    out.bin_high = high / static_cast<double>(attrs.output_height);
    out.bin_wide = wide / static_cast<double>(attrs.output_width);
    out.rows = samples(attrs, out.bin_high);
    out.columns = samples(attrs, out.bin_wide);
    const int64_t bins = attrs.output_height * attrs.output_width;
    if (out.rows < 0 || out.columns < 0 || out.rows * out.columns > kMaxSamples / bins)
      return std::nullopt;
    return out;
  }

  /// Sample k of the bin in this row and column.
  BoxSample sample(int64_t bin_row, int64_t bin_column, int64_t k, int64_t height,
                   int64_t width) const {
    const int64_t grid_row = k / columns;
    const double down = (static_cast<double>(grid_row) + 0.5) / static_cast<double>(rows);
    const double along = (static_cast<double>(k % columns) + 0.5) / static_cast<double>(columns);
    return make_sample(top + bin_high * (static_cast<double>(bin_row) + down),
                       left + bin_wide * (static_cast<double>(bin_column) + along), height, width);
  }

 private:
  /// Samples along an axis of a bin; -1: too many, or the bin is no number.
  static int64_t samples(const RoiAlign& attrs, double bin) {
    if (attrs.sampling_ratio > 0) return attrs.sampling_ratio;
    if (!(bin < static_cast<double>(kMaxGrid))) return -1;
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin)));
  }
};

}  // namespace dais
