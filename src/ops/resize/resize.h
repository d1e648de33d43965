#pragma once

#include "ir/op.h"

namespace dais {

/// (data, roi?, scales?, sizes?): resamples the listed axes (all when empty) to floor(size * scale)
/// or to given sizes. An empty scales or sizes input counts as left out. Attributes are those of
/// ONNX; nearest_mode has one more value, "by_scale": floor when enlarging and ceil when reducing,
/// which is what opsets before 11 mean.
struct Resize {
  std::string mode = "nearest";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  float cubic_coeff_a = -0.75f;
  bool exclude_outside = false;
  float extrapolation_value = 0;
  bool antialias = false;
  std::vector<int64_t> axes = {};
  std::string keep_aspect_ratio_policy = "stretch";
  static constexpr auto fields =
      std::tuple{field("mode", &Resize::mode),
                 field("coordinate_transformation_mode", &Resize::coordinate_transformation_mode),
                 field("nearest_mode", &Resize::nearest_mode),
                 field("cubic_coeff_a", &Resize::cubic_coeff_a),
                 field("exclude_outside", &Resize::exclude_outside),
                 field("extrapolation_value", &Resize::extrapolation_value),
                 field("antialias", &Resize::antialias),
                 field("axes", &Resize::axes),
                 field("keep_aspect_ratio_policy", &Resize::keep_aspect_ratio_policy)};
  static const Op op;
};

/// (dy, roi?, scales?, sizes?, sizes of the data: i64 list): the gradient of Resize with the same
/// attributes and inputs.
struct ResizeBackward : Resize {
  static const Op op;
};

}  // namespace dais
