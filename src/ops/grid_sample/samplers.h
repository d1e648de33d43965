#pragma once

#include <vector>

#include "ir/tensor.h"
#include "ops/grid_sample/axis_sampler.cuh"
#include "ops/grid_sample/grid_sample.h"

namespace dais {

inline SampleMode sample_mode(const GridSample& attrs) {
  if (attrs.mode == "nearest") return SampleMode::nearest;
  return attrs.mode == "linear" ? SampleMode::linear : SampleMode::cubic;
}

inline SamplePadding sample_padding(const GridSample& attrs) {
  if (attrs.padding_mode == "zeros") return SamplePadding::zeros;
  return attrs.padding_mode == "border" ? SamplePadding::border : SamplePadding::reflection;
}

/// One for each axis of the image behind its batch and channels.
inline std::vector<AxisSampler> make_samplers(const GridSample& attrs, const Shape& image) {
  std::vector<AxisSampler> out;
  for (size_t axis = 2; axis < image.rank(); ++axis)
    out.emplace_back(image[axis], sample_mode(attrs), sample_padding(attrs), attrs.align_corners);
  return out;
}

}  // namespace dais
