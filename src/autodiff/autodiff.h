#pragma once

#include <span>

#include "ir/graph.h"

namespace dais {

/// Appends to the graph the gradients of `loss` (any shape: the gradients of the sum of its
/// elements) with respect to each value of `wrt`; gives one value for each, nullptr where the loss
/// does not depend on it. Nodes are added at the end and named after the node that they belong to;
/// nodes of the graph may gain outputs, and composite ops without a gradient are replaced by what
/// they stand for. Throws `unsupported` listing every node on the way that has no gradient, and
/// why; the graph is then of no further use.
Values append_gradients(Graph& graph, Value* loss, std::span<Value* const> wrt);

/// The same for several results, each with the gradient that reaches it (of its own shape).
Values append_gradients(Graph& graph, std::span<Value* const> results,
                        std::span<Value* const> seeds, std::span<Value* const> wrt);

/// Why an op has no gradient; empty for ops that have one (or that are decomposed into such).
std::string_view no_gradient_reason(const Op& op);

}  // namespace dais
