#pragma once

#include "ir/op.h"

namespace dais {

// Means over the ranks of a training (base/ranks.h), f32. All ranks run the same graph, so that
// they meet in the same order. Their results depend on other processes: none of them is pure.

/// (x): the mean of x over all ranks.
struct AllReduce {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (x): begins the mean of x. What it gives may only be read by AllReduceFinish, until which other
/// nodes run meanwhile.
struct AllReduceStart {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (begun): waits for it and gives the mean.
struct AllReduceFinish {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
