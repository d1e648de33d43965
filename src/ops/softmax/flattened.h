#pragma once

#include "ir/onnx_import.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"

namespace dais {

/// Softmax and its like before version 13: the axes from `axis` on (default 1) are one row. That is
/// the same as today's operator when all but the first of them have size 1.
template <typename S>
Values import_flattened(OnnxImport& c) {
  Value* x = c.input(0);
  if (!x) c.fail("the input is missing");
  int64_t axis = c.integer("axis", 1);
  if (x->type.shape) {
    const Dims& shape = *x->type.shape;
    const int64_t rank = std::ssize(shape);
    if (axis < -rank || axis > rank)
      c.fail("axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) +
             " tensor");
    axis = axis < 0 ? axis + rank : axis;
    bool single = axis < rank;
    for (int64_t i = axis + 1; i < rank; ++i)
      single = single && shape[static_cast<size_t>(i)].is(1);
    if (single) return c.emit(S{.axis = axis}, {x});
  }
  Value* rows = c.graph.add(S{.axis = 1}, {c.graph.add(Flatten{.axis = axis}, {x})});
  Value* shape = c.graph.add(ShapeOf{}, {x});
  return {c.graph.add(Reshape{.allowzero = true}, {rows, shape}, std::string(c.name))};
}

}  // namespace dais
