#pragma once

#include "ir/op.h"

namespace dais {

/// Sums of products named by index letters, as NumPy's einsum: repeated letters in one term take a
/// diagonal, "..." stands for broadcast axes, and without "->" the letters that occur once are kept
/// in alphabetical order.
struct Einsum {
  std::string equation = {};
  static constexpr auto fields = std::tuple{field("equation", &Einsum::equation)};
  static const Op op;
};

}  // namespace dais
