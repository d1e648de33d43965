#pragma once

#include "ir/graph.h"

namespace dais {

/// Of ops that read no more of their first input than they write: a gather from a large table.
Cost cost_of_taking(const Node& node);

}  // namespace dais
