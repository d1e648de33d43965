#pragma once

#include "ir/op.h"

namespace dais {

/// Sizes of axes [start, end) as 1-D i64; negative bounds count from the end, all are clamped.
struct ShapeOf {
  int64_t start = 0;
  std::optional<int64_t> end = {};
  static constexpr auto fields =
      std::tuple{field("start", &ShapeOf::start), field("end", &ShapeOf::end)};
  static const Op op;
};

/// The axes [first, last) that it reads.
std::pair<int64_t, int64_t> shape_window(const ShapeOf& attrs, size_t rank);

/// Number of elements as an i64 scalar.
struct Size {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
