#pragma once

#include <vector>

#include "ops/resize/resize.h"

namespace dais {

/// How one axis is resampled.
struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double exact_out = 0;  ///< in * scale before it is rounded down
  double roi_start = 0, roi_end = 1;

  /// Every output element is the input element of the same index.
  bool untouched(const Resize& attrs) const;
};

/// Input elements and weights of each output element of an axis.
struct AxisTaps {
  struct Tap {
    int64_t index;
    double weight;
  };
  std::vector<Tap> taps;
  std::vector<size_t> first;  ///< first tap of each output element, and the end
  std::vector<bool> outside;  ///< takes the extrapolation value instead
};

/// For modes linear and cubic.
AxisTaps make_axis_taps(const Resize& attrs, const ResizeAxis& axis);

/// For mode nearest: the input index of each output element; -1 takes the extrapolation value.
std::vector<int64_t> nearest_indices(const Resize& attrs, const ResizeAxis& axis);

/// For every mode: nearest elements are taps of weight one.
AxisTaps any_axis_taps(const Resize& attrs, const ResizeAxis& axis);

}  // namespace dais
