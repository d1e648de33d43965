#pragma once

#include "ir/op.h"

namespace dais {

/// Determinant of each square matrix in the last two axes.
struct Det {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
