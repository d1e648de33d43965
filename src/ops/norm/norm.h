#pragma once

#include "ir/op.h"

namespace dais {

/// Per-channel normalisation. Inputs: X [N, C, ...], scale, B, mean, var, each [C]. Without
/// training_mode only Y is given, by the mean and variance given. With it the batch's own are used,
/// and outputs 1 and 2 are input * momentum + batch's * (1 - momentum); outputs 3 and 4 (not of
/// ONNX) are the batch's mean and inverse deviation, which the gradient needs.
struct BatchNormalization {
  float epsilon = 1e-5f;
  float momentum = 0.9f;
  bool training_mode = false;
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("epsilon", &BatchNormalization::epsilon),
                 field("momentum", &BatchNormalization::momentum),
                 field("training_mode", &BatchNormalization::training_mode),
                 field("channels_last", &BatchNormalization::channels_last)};
  static const Op op;
};

/// The gradient of BatchNormalization in training_mode. Inputs: dy, X, scale, and the mean and
/// inverse deviation of the batch. Outputs: dX, dscale, dB.
struct BatchNormalizationBackward {
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("channels_last", &BatchNormalizationBackward::channels_last)};
  static const Op op;
};

/// Each channel of each example by its own mean and variance. Inputs: X, scale [C], B [C].
struct InstanceNormalization {
  float epsilon = 1e-5f;
  static constexpr auto fields = std::tuple{field("epsilon", &InstanceNormalization::epsilon)};
  static const Op op;
};

/// Groups of neighbouring channels of each example by the group's mean and variance. Inputs: X,
/// scale [C], bias [C].
struct GroupNormalization {
  float epsilon = 1e-5f;
  int64_t num_groups = 1;
  int64_t stash_type = 1;
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("epsilon", &GroupNormalization::epsilon),
                 field("num_groups", &GroupNormalization::num_groups),
                 field("stash_type", &GroupNormalization::stash_type),
                 field("channels_last", &GroupNormalization::channels_last)};
  static const Op op;
};

/// The axes from `axis` on, as one row, by its mean and variance. Inputs: X, Scale, B? (both
/// broadcast to X). Outputs: Y, Mean?, InvStdDev? (in stash_type, normalised axes kept as 1).
struct LayerNormalization {
  int64_t axis = -1;
  float epsilon = 1e-5f;
  DType stash_type = DType::f32;
  static constexpr auto fields = std::tuple{field("axis", &LayerNormalization::axis),
                                            field("epsilon", &LayerNormalization::epsilon),
                                            field("stash_type", &LayerNormalization::stash_type)};
  static const Op op;
};

/// Inputs: dy, X, Scale, Mean, InvStdDev. Outputs: dX, dScale, and the gradient of a B of Scale's
/// shape.
struct LayerNormalizationBackward {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &LayerNormalizationBackward::axis)};
  static const Op op;
};

/// LayerNormalization without the mean: x / sqrt(mean(x * x) + epsilon) * scale.
/// Outputs: Y, InvStdDev?.
struct RMSNormalization {
  int64_t axis = -1;
  float epsilon = 1e-5f;
  DType stash_type = DType::f32;
  static constexpr auto fields = std::tuple{field("axis", &RMSNormalization::axis),
                                            field("epsilon", &RMSNormalization::epsilon),
                                            field("stash_type", &RMSNormalization::stash_type)};
  static const Op op;
};

/// Inputs: dy, X, Scale, InvStdDev. Outputs: dX, dScale.
struct RMSNormalizationBackward {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &RMSNormalizationBackward::axis)};
  static const Op op;
};

/// Divides by the 1- or 2-norm along an axis; a row of zeros stays zero.
struct LpNormalization {
  int64_t axis = -1;
  int64_t p = 2;
  static constexpr auto fields =
      std::tuple{field("axis", &LpNormalization::axis), field("p", &LpNormalization::p)};
  static const Op op;
};

/// (X - mean) / (sqrt(mean of squares - squared mean) + 1e-9) over the axes.
struct MeanVarianceNormalization {
  std::vector<int64_t> axes = {0, 2, 3};
  bool normalize_variance = true;
  static constexpr auto fields =
      std::tuple{field("axes", &MeanVarianceNormalization::axes),
                 field("normalize_variance", &MeanVarianceNormalization::normalize_variance)};
  static const Op op;
};

}  // namespace dais
