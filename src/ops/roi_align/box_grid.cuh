#pragma once

// Where the samples of a box lie, for the CPU and for devices: in double, since the size of a box
// decides how many samples it takes.
#ifndef DAIS_SHARED
#include <cmath>

#include "base/shared_text.h"
#endif

namespace dais {

/// One bilinear sample: four elements of a plane.
struct BoxSample {
  long long at[4];
  double weight[4];
};

/// Lower neighbour, upper neighbour and distance along one axis.
struct Neighbours {
  long long low, high;
  double rest;
};

DAIS_SHARED Neighbours neighbours(double x, long long size) {
  if (x < 0) x = 0;
  const auto low = static_cast<long long>(x);
  if (low >= size - 1) return {size - 1, size - 1, 0};
  return {low, low + 1, x - static_cast<double>(low)};
}

DAIS_SHARED BoxSample make_sample(double y, double x, long long height, long long width) {
  // Far outside the plane a sample is zero.
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return {{0, 0, 0, 0}, {0, 0, 0, 0}};
  const Neighbours v = neighbours(y, height), h = neighbours(x, width);
  return {{v.low * width + h.low, v.low * width + h.high, v.high * width + h.low,
           v.high * width + h.high},
          {(1 - v.rest) * (1 - h.rest), (1 - v.rest) * h.rest, v.rest * (1 - h.rest),
           v.rest * h.rest}};
}

/// How boxes are sampled: RoiAlign's attributes.
struct BoxRules {
  long long bin_rows, bin_columns;  ///< bins of a box
  long long sampling_ratio;
  double scale;
  bool half_pixel;
};

/// Where the samples of a box's bins lie.
struct BoxGrid {
  static constexpr long long kMaxGrid = 1 << 14, kMaxSamples = 1 << 26;

  double left, top, bin_wide, bin_high;
  long long rows, columns;  ///< samples of each bin
  bool fits;                ///< false: more than kMaxSamples, or corners that are no numbers

  /// Of a box of the corners x0, y0, x1, y1.
  template <typename T>
  DAIS_SHARED static BoxGrid of(const BoxRules& rules, const T* corners) {
    const double shift = rules.half_pixel ? 0.5 : 0;
    const auto place = [&](int i) { return static_cast<double>(corners[i]) * rules.scale - shift; };
    BoxGrid out{};
    out.left = place(0);
    out.top = place(1);
    double wide = place(2) - out.left, high = place(3) - out.top;
    if (!rules.half_pixel) {
      wide = wide < 1 ? 1 : wide;
      high = high < 1 ? 1 : high;
    }
    out.bin_high = high / static_cast<double>(rules.bin_rows);
    out.bin_wide = wide / static_cast<double>(rules.bin_columns);
    out.rows = samples(rules, out.bin_high);
    out.columns = samples(rules, out.bin_wide);
    out.fits = out.rows >= 0 && out.columns >= 0 &&
               out.rows * out.columns <= kMaxSamples / (rules.bin_rows * rules.bin_columns);
    return out;
  }

  /// Sample k of the bin in this row and column.
  DAIS_SHARED BoxSample sample(long long bin_row, long long bin_column, long long k,
                               long long height, long long width) const {
    const long long grid_row = k / columns;
    const double down = (static_cast<double>(grid_row) + 0.5) / static_cast<double>(rows);
    const double along = (static_cast<double>(k % columns) + 0.5) / static_cast<double>(columns);
    return make_sample(top + bin_high * (static_cast<double>(bin_row) + down),
                       left + bin_wide * (static_cast<double>(bin_column) + along), height, width);
  }

 private:
  /// Samples along an axis of a bin; -1: too many, or the bin is no number.
  DAIS_SHARED static long long samples(const BoxRules& rules, double bin) {
    if (rules.sampling_ratio > 0) return rules.sampling_ratio;
    if (!(bin < static_cast<double>(kMaxGrid))) return -1;
    return bin > 0 ? static_cast<long long>(ceil(bin)) : 0;
  }
};

}  // namespace dais
