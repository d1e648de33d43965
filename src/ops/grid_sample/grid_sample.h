#pragma once

#include "ir/op.h"

namespace dais {

/// (image [N, C, spatial…], grid [N, out…, d]): the image at the grid's places, which are
/// coordinates from -1 to 1 ordered x, y(, z). Modes linear, nearest, cubic; outside the image
/// zeros, border or reflection.
struct GridSample {
  std::string mode = "linear";
  std::string padding_mode = "zeros";
  bool align_corners = false;
  static constexpr auto fields =
      std::tuple{field("mode", &GridSample::mode), field("padding_mode", &GridSample::padding_mode),
                 field("align_corners", &GridSample::align_corners)};
  static const Op op;
};

}  // namespace dais
