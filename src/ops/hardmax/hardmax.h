#pragma once

#include "ir/op.h"

namespace dais {

/// 1 at the first largest element along an axis, 0 elsewhere.
struct Hardmax {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &Hardmax::axis)};
  static const Op op;
};

}  // namespace dais
