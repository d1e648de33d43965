#pragma once

#include "ir/op.h"

namespace dais {

/// Connectionist temporal classification: minus the logarithm of the probability of each target
/// sequence, summed over all alignments with blanks between labels. Inputs: logarithms of
/// probabilities [T, N, C], targets [N, S] (any integer type; behind an example's length they are
/// not looked at), lengths of the inputs [N] and of the targets [N]. Outputs: loss [N], and for the
/// gradient the logarithms of the forward sums [N, T, 2 S + 1]. An example that no alignment fits
/// has an infinite loss, or none with zero_infinity, and no gradient.
struct CTCLoss {
  int64_t blank = 0;
  bool zero_infinity = false;
  static constexpr auto fields =
      std::tuple{field("blank", &CTCLoss::blank), field("zero_infinity", &CTCLoss::zero_infinity)};
  static const Op op;
};

/// The gradient of the logarithms. Inputs: dy [N], then those of CTCLoss, and its second output.
struct CTCLossBackward {
  int64_t blank = 0;
  static constexpr auto fields = std::tuple{field("blank", &CTCLossBackward::blank)};
  static const Op op;
};

}  // namespace dais
