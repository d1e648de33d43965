#pragma once

#include <optional>

#include "ir/graph.h"

namespace dais {

/// How many of the last axes of its first input a node joins row by row: reductions along trailing
/// axes, softmax, layer and RMS norms. Nothing: it is none of these.
std::optional<size_t> joined_axes(const Node& node);

/// A shape whose last `axes` sizes are 1, as one value for each row of `shape` has it.
Dims row_shape(const Dims& shape, size_t axes);

}  // namespace dais
