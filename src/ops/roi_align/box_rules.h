#pragma once

#include "ops/roi_align/box_grid.cuh"
#include "ops/roi_align/roi_align.h"

namespace dais {

inline BoxRules box_rules(const RoiAlign& attrs) {
  return {.bin_rows = attrs.output_height,
          .bin_columns = attrs.output_width,
          .sampling_ratio = attrs.sampling_ratio,
          .scale = static_cast<double>(attrs.spatial_scale),
          .half_pixel = attrs.coordinate_transformation_mode == "half_pixel"};
}

}  // namespace dais
