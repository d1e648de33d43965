#pragma once

#include "ir/op.h"

namespace dais {

/// (data, shape): each of the axes (all when empty) is cropped or padded with zeros, around its
/// centre, to the given size.
struct CenterCropPad {
  std::vector<int64_t> axes = {};
  static constexpr auto fields = std::tuple{field("axes", &CenterCropPad::axes)};
  static const Op op;
};

}  // namespace dais
