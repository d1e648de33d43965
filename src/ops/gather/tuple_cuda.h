#pragma once

#include "backends/cuda/row.h"

namespace dais {

constexpr size_t kMostTupleAxes = 8;

/// The axes that a tuple of indices names, as in tuple.cuh.
struct Tuple {
  uint32_t sizes[kMostTupleAxes] = {};
  int length = 0;
};

/// Tuples of `length` indices into the axes of `data` from `first` on.
inline Tuple tuple_of(const Shape& data, size_t first, int64_t length) {
  Tuple tuple;
  tuple.length = static_cast<int>(length);
  for (size_t axis = 0; axis < static_cast<size_t>(length); ++axis)
    tuple.sizes[axis] = cuda::size32(data[first + axis]);
  return tuple;
}

}  // namespace dais
