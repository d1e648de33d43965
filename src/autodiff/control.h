#pragma once

#include <span>

#include "ir/graph.h"

namespace dais {

/// Gradients of nodes with regions, which are built by appending gradients inside a copy of the
/// region. If recomputes the branch that was taken; Scan and Loop hand out the states of each step
/// as further outputs and are followed by a Scan that runs backwards over them, so that states must
/// keep their sizes.
using ControlGradient = Values (*)(Graph& graph, Node& node, std::span<Value* const> dy);
/// nullptr for other ops.
ControlGradient control_gradient(const Op& op);

}  // namespace dais
