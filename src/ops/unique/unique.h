#pragma once

#include "ir/op.h"

namespace dais {

/// The different elements of the flattened input, or the different slices along an axis, sorted or
/// in order of first appearance. Further outputs: first positions, where each element of the input
/// went, and how often each occurs.
struct Unique {
  std::optional<int64_t> axis = std::nullopt;
  bool sorted = true;
  static constexpr auto fields =
      std::tuple{field("axis", &Unique::axis), field("sorted", &Unique::sorted)};
  static const Op op;
};

}  // namespace dais
