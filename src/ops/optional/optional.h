#pragma once

#include "ir/op.h"

namespace dais {

/// The input as an optional value; without input, an empty one that could hold a tensor of `dtype`
/// or a sequence of such.
struct Optional {
  DType dtype = DType::undefined;
  bool sequence = false;
  static constexpr auto fields =
      std::tuple{field("dtype", &Optional::dtype), field("sequence", &Optional::sequence)};
  static const Op op;
};

/// What an optional holds; fails when it is empty. A value that is no optional passes.
struct OptionalGetElement {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// Whether there is a value: boolean scalar.
struct OptionalHasElement {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
