#pragma once

#include "passes/passes.h"

namespace dais {

/// Replaces `group` (nodes in execution order, all of `graph`) by one Fused node placed where the
/// last of them stands, if `target` has a kernel for it; otherwise changes nothing. Constants that
/// the group uses move into its body; what is used outside becomes an output.
/// Gives the new node or nullptr.
Node* fuse_if_supported(Graph& graph, const std::vector<Node*>& group, const Target& target);

}  // namespace dais
