#pragma once

#include "ir/call.h"

namespace dais {

/// Stacks equal-shaped tensors along a new axis; `backwards` puts the last one first. With no
/// parts, gives size 0 along the axis and, for the rest, the sizes of `type` (0 where unknown).
Tensor stack(const Call& c, const std::vector<Datum>& parts, int64_t axis, bool backwards,
             const Type& type);

}  // namespace dais
