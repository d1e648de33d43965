#pragma once

#include "ir/inference.h"

namespace dais {

/// The type of a region's output as the graph around sees it: sizes that use the region's own
/// symbols become fresh ones..
Type outer_type(Inference& c, const Graph& region, const Type& inner);

/// What a value is when it comes from either of two places: equal sizes stay, others become fresh.
Type merged_type(Inference& c, const Type& a, const Type& b);

}  // namespace dais
