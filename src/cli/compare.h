#pragma once

#include <string>

#include "ir/tensor.h"

namespace dais::cli {

/// |a - b| <= absolute + relative * |b| + of_largest * (largest |b| of the tensor) for
/// floating-point elements; everything else must be equal.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7, of_largest = 0;
};

/// Says where two values first differ, or nothing when they agree: kind, element type, shape, then
/// elements. NaN agrees with NaN, and an infinity with the same infinity.
std::string first_difference(const Datum& got, const Datum& expected, const Tolerance& tolerance);

/// Whether results of a quantised model, whose roundings may fall to either side, agree: no element
/// further than `steps` / 255 of the expected tensor's range, or (with `top1`) every row along the
/// last axis with its largest element in the same place. Tensors of one numeric type and shape
/// only.
bool agree_within_steps(const Tensor& got, const Tensor& expected, double steps);
bool agree_in_top1(const Tensor& got, const Tensor& expected);

/// How far a tensor is from the truth, given in f64 or its own type.
struct Distance {
  double largest = 0;  ///< difference / largest value of the truth
  double rms = 0;      ///< root mean square of the differences / that of the truth
};
Distance distance(const Tensor& tensor, const Tensor& truth);

}  // namespace dais::cli
