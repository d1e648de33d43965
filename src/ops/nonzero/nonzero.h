#pragma once

#include "ir/op.h"

namespace dais {

/// Indices of all non-zero elements in row-major order, one column each: i64[rank, count].
struct NonZero {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
