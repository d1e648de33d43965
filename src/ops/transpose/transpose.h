#pragma once

#include "ir/op.h"

namespace dais {

/// Axis i of the output is axis perm[i] of the input. An empty perm reverses the axes.
struct Transpose {
  std::vector<int64_t> perm = {};
  static constexpr auto fields = std::tuple{field("perm", &Transpose::perm)};
  static const Op op;
};

}  // namespace dais
