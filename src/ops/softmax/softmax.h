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

}  // namespace dais
