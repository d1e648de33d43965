#pragma once

#include "ir/op.h"

namespace dais {

/// (data, k?): the upper (column >= row + k) or lower (column <= row + k) triangle of each matrix;
/// the rest is zero.
struct Trilu {
  bool upper = true;
  static constexpr auto fields = std::tuple{field("upper", &Trilu::upper)};
  static const Op op;
};

}  // namespace dais
