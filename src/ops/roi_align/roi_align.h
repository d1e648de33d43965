#pragma once

#include "ir/op.h"

namespace dais {

/// (features NCHW, boxes [n, 4] as x, y, x, y, batch indices [n]): each box resampled to
/// output_height × output_width bins by the mean (avg) or maximum (max) of bilinear samples.
/// coordinate_transformation_mode half_pixel moves boxes by half a pixel.
struct RoiAlign {
  std::string mode = "avg";
  int64_t output_height = 1, output_width = 1;
  int64_t sampling_ratio = 0;  ///< samples of a bin along an axis; 0: by the size of the box
  float spatial_scale = 1;
  std::string coordinate_transformation_mode = "half_pixel";
  static constexpr auto fields = std::tuple{
      field("mode", &RoiAlign::mode),
      field("output_height", &RoiAlign::output_height),
      field("output_width", &RoiAlign::output_width),
      field("sampling_ratio", &RoiAlign::sampling_ratio),
      field("spatial_scale", &RoiAlign::spatial_scale),
      field("coordinate_transformation_mode", &RoiAlign::coordinate_transformation_mode)};
  static const Op op;
};

}  // namespace dais
