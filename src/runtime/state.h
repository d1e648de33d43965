#pragma once

#include <span>

#include "ir/graph.h"

namespace dais {

/// A value that lives from run to run: what output `output` gives is what input `input` takes next
/// time (a weight, a moment, a counter, a cache). Positions in the graph's inputs and outputs.
struct StatePair {
  size_t input = 0, output = 0;
};

/// Throws `invalid_argument` when a pair names no input or output, an input twice, an output twice,
/// or values that are no tensors of one element type.
void check_states(const Graph& graph, std::span<const StatePair> states);

/// Moves the node that makes a state's new value behind the last reader of its old one, with all
/// that depends on it, so that the new value can be written over the old. Where a reader needs the
/// new value itself, the order stays as it is (and the state will be copied).
void order_for_states(Graph& graph, std::span<const StatePair> states);

}  // namespace dais
