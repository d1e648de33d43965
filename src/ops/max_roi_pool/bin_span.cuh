#pragma once

// Which pixels a bin of a box covers, for the CPU and for devices: in double, since corners are
// rounded to pixels.
#ifndef DAIS_SHARED
#include <cmath>

#include "base/shared_text.h"
#endif

namespace dais {

/// Rows or columns [first, last).
struct BinSpan {
  long long first, last;
};

DAIS_SHARED double clamp_to(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/// The pixel of a finite coordinate. Beyond any plane every bin is empty, whatever the distance.
DAIS_SHARED double box_pixel(double at, double scale) {
  return clamp_to(round(at * scale), -1e9, 1e9);
}

/// Of bin i of `count` along one side of a box, in a plane with `size` pixels along it.
DAIS_SHARED BinSpan bin_span(double from, double to, double scale, long long count, long long size,
                             long long i) {
  const double start = box_pixel(from, scale), extent = box_pixel(to, scale) - start + 1;
  const double bin = (extent < 1 ? 1 : extent) / static_cast<double>(count);
  const double low = floor(static_cast<double>(i) * bin) + start;
  const double high = ceil(static_cast<double>(i + 1) * bin) + start;
  const auto limit = static_cast<double>(size);
  return {static_cast<long long>(clamp_to(low, 0, limit)),
          static_cast<long long>(clamp_to(high, 0, limit))};
}

}  // namespace dais
