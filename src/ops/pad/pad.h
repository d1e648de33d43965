#pragma once

#include "ir/op.h"

namespace dais {

/// (data, pads, value?, axes?): elements added before and after each axis; negative counts remove
/// elements, before anything is added. Modes: constant, reflect, edge, wrap; reflect and wrap go on
/// periodically where the padding is longer than the axis.
struct Pad {
  std::string mode = "constant";
  static constexpr auto fields = std::tuple{field("mode", &Pad::mode)};
  static const Op op;
};

/// (dy, sizes: i64 list, pads, axes?): the gradient of Pad with respect to data of those sizes.
struct PadBackward {
  std::string mode = "constant";
  static constexpr auto fields = std::tuple{field("mode", &PadBackward::mode)};
  static const Op op;
};

}  // namespace dais
