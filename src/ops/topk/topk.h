#pragma once

#include "ir/op.h"

namespace dais {

/// (data, k): the k largest or smallest elements along an axis and their positions (i64). Equal
/// elements keep their order; NaN counts as larger than every number. Unsorted results are given
/// sorted as well.
struct TopK {
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  static constexpr auto fields = std::tuple{
      field("axis", &TopK::axis), field("largest", &TopK::largest), field("sorted", &TopK::sorted)};
  static const Op op;
};

}  // namespace dais
