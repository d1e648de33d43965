#pragma once

#include "ir/inference.h"

namespace dais {

/// The type of a region's output as the graph around sees it: sizes that use the region's own
/// symbols become fresh ones.
Type outer_type(Inference& c, const Graph& region, const Type& inner);

/// What a body's input is known to be from the value that goes in: everything but a tensor's sizes,
/// which may differ each time round.
Type element_hint(const Value* value);

/// What a value is when it comes from either of two places: equal sizes stay, others become fresh.
Type merged_type(Inference& c, const Type& a, const Type& b);

}  // namespace dais
