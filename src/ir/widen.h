#pragma once

#include "ir/graph.h"

namespace dais {

/// The graph with f64 wherever it has f16, bf16 or f32 (inputs, constants, element types named by
/// attributes; integers and quantised types stay), regions included. Evaluated, it gives what the
/// model means with hardly any rounding: the truth that two ways of running it are judged by.
/// Throws what inference says when an op takes no f64.
std::unique_ptr<Graph> widened(const Graph& graph);

/// A tensor of f16, bf16 or f32 as f64; others as they are.
Tensor widened(const Tensor& tensor);

}  // namespace dais
