#pragma once

#include "ir/graph.h"

namespace dais::train {

/// Lets a graph hold fewer values between its way forward, which ends with the node `last`, and its
/// way back behind it. The way forward is divided into `stretches` (at least 2) of about equal
/// memory, at places where little passes from one to the next. Only that is kept; whatever else the
/// way back reads of a stretch is computed from it once more, just before it is first needed. Nodes
/// that are impure or hold regions are never run twice: what they give is kept.
void recompute(Graph& graph, const Node& last, int stretches);

}  // namespace dais::train
