#pragma once

#include "ir/op.h"

namespace dais {

/// (theta [N, d, d+1], size [N, C, spatial…]): where each output pixel lies under the affine maps,
/// in coordinates from -1 to 1: [N, spatial…, d] with the last axis ordered x, y(, z). Corners mean
/// pixel centres with align_corners, else the outer edges of border pixels.
struct AffineGrid {
  bool align_corners = false;
  static constexpr auto fields = std::tuple{field("align_corners", &AffineGrid::align_corners)};
  static const Op op;
};

}  // namespace dais
