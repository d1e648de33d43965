#pragma once

#include "ir/op.h"

namespace dais {

/// Joins tensors of the same type along one axis; other sizes are equal.
struct Concat {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{required_field("axis", &Concat::axis)};
  static const Op op;
};

/// Fills `y` with the tensors side by side along `axis`; shapes fit (checked by the caller).
void concat_into(const std::vector<const Tensor*>& parts, size_t axis, Tensor& y);

}  // namespace dais
