#pragma once

#include "ir/op.h"

namespace dais {

/// (data, lengths): for each batch entry the first `length` time steps in reverse order. Batch and
/// time are axes 0 and 1 in either order.
struct ReverseSequence {
  int64_t batch_axis = 1;
  int64_t time_axis = 0;
  static constexpr auto fields = std::tuple{field("batch_axis", &ReverseSequence::batch_axis),
                                            field("time_axis", &ReverseSequence::time_axis)};
  static const Op op;
};

}  // namespace dais
