#pragma once

#include "ir/op.h"

namespace dais {

/// -X[n, target, ...] * weight[target], summed, averaged by weight, or one for each target.
/// Inputs: X [N, C, ...] (logarithms of probabilities), target [N, ...], weight? [C]. Targets equal
/// to ignore_index count nothing. reduction: "none", "sum" or "mean".
struct NegativeLogLikelihoodLoss {
  std::string reduction = "mean";
  std::optional<int64_t> ignore_index = {};
  static constexpr auto fields =
      std::tuple{field("reduction", &NegativeLogLikelihoodLoss::reduction),
                 field("ignore_index", &NegativeLogLikelihoodLoss::ignore_index)};
  static const Op op;
};

/// Its gradient with respect to X. Inputs: dy (of the loss's shape), X, target, weight?.
struct NegativeLogLikelihoodLossBackward {
  std::string reduction = "mean";
  std::optional<int64_t> ignore_index = {};
  static constexpr auto fields =
      std::tuple{field("reduction", &NegativeLogLikelihoodLossBackward::reduction),
                 field("ignore_index", &NegativeLogLikelihoodLossBackward::ignore_index)};
  static const Op op;
};

/// NegativeLogLikelihoodLoss of the LogSoftmax of X over its channels. Outputs: loss, log_prob?.
struct SoftmaxCrossEntropyLoss {
  std::string reduction = "mean";
  std::optional<int64_t> ignore_index = {};
  static constexpr auto fields =
      std::tuple{field("reduction", &SoftmaxCrossEntropyLoss::reduction),
                 field("ignore_index", &SoftmaxCrossEntropyLoss::ignore_index)};
  static const Op op;
};

}  // namespace dais
