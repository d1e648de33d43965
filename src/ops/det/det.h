#pragma once

#include "ir/op.h"

namespace dais {

/// Determinant of each square matrix in the last two axes.
struct Det {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (dy, x): the gradient of Det: dy times the cofactors of each matrix.
struct DetBackward {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
