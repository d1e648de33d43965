#pragma once

#include "ir/op.h"

namespace dais {

/// (data, shape): the same elements under another shape. -1 stands for what is left; 0 copies the
/// input's size at that place, or means zero with allowzero.
struct Reshape {
  bool allowzero = false;
  static constexpr auto fields = std::tuple{field("allowzero", &Reshape::allowzero)};
  static const Op op;
};

/// Two axes: everything before `axis`, and the rest. axis may equal the rank.
struct Flatten {
  int64_t axis = 1;
  static constexpr auto fields = std::tuple{field("axis", &Flatten::axis)};
  static const Op op;
};

/// (data, axes?): drops axes of size 1; without axes, all of them.
struct Squeeze {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (data, axes): puts axes of size 1 where the output is to have them.
struct Unsqueeze {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (data, shape): repeats by broadcasting in both directions: shape entries of 1 keep a size.
struct Expand {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
