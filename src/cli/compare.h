#pragma once

#include <string>

#include "ir/tensor.h"

namespace dais::cli {

/// |a - b| <= absolute + relative * |b| for floating-point elements; everything else must be equal.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

/// Says where two values first differ, or nothing when they agree: kind, element type, shape, then
/// elements. NaN agrees with NaN, and an infinity with the same infinity.
std::string first_difference(const Datum& got, const Datum& expected, const Tolerance& tolerance);

}  // namespace dais::cli
