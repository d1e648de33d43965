#pragma once

#include "ir/op.h"

namespace dais {

/// Softmax along one axis: exp(x - max) / sum(exp(x - max)). A row of minus infinities gives NaN,
/// as IEEE arithmetic does.
struct Softmax {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &Softmax::axis)};
  static const Op op;
};

/// Logarithm of Softmax: x - max - log(sum(exp(x - max))).
struct LogSoftmax {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &LogSoftmax::axis)};
  static const Op op;
};

/// `count` elements `step` apart, in place.
void softmax_row(double* row, int64_t count, int64_t step = 1);

}  // namespace dais
