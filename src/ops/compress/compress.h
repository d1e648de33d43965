#pragma once

#include "ir/op.h"

namespace dais {

/// (data, condition): the slices along an axis, or the elements of the flattened data, for which
/// the condition holds. A condition shorter than the axis ends the selection.
struct Compress {
  std::optional<int64_t> axis = std::nullopt;
  static constexpr auto fields = std::tuple{field("axis", &Compress::axis)};
  static const Op op;
};

}  // namespace dais
