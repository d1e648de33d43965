#pragma once

#include "ir/graph.h"

namespace dais {

/// A constant scalar of a number type.
Value* add_scalar(Graph& graph, double value, DType dtype);

/// What decompositions of real functions compute in: f32 where x is narrower, else x's own type.
DType wide_type(const Value& x);
/// x, cast where it is of another type.
Value* as_type(Graph& graph, Value* x, DType dtype);

}  // namespace dais
