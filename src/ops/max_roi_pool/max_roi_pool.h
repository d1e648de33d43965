#pragma once

#include "ir/op.h"

namespace dais {

/// (features NCHW, rois [n, 5] as batch, x, y, x, y): the maximum of each of pooled_shape bins of a
/// box whose corners are scaled and rounded to pixels; empty bins are 0.
struct MaxRoiPool {
  std::vector<int64_t> pooled_shape = {};
  float spatial_scale = 1;
  static constexpr auto fields = std::tuple{field("pooled_shape", &MaxRoiPool::pooled_shape),
                                            field("spatial_scale", &MaxRoiPool::spatial_scale)};
  static const Op op;
};

}  // namespace dais
