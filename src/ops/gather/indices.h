#pragma once

#include <string>

#include "ir/call.h"

namespace dais {

/// Indices of a tensor of any integer type as non-negative numbers below `size`; negative ones
/// count from the end. Fails naming the first one outside.
inline int64_t checked_index(const Call& c, int64_t index, int64_t size) {
  if (index < -size || index >= size)
    c.fail("index " + std::to_string(index) + " is outside an axis of size " + std::to_string(size),
           size == 0 ? "The axis is empty"
                     : "Use " + std::to_string(-size) + " to " + std::to_string(size - 1));
  return index < 0 ? index + size : index;
}

inline std::vector<int64_t> checked_indices(const Call& c, const Tensor& indices, int64_t size) {
  auto out = indices.to_ints();
  for (int64_t& index : out) index = checked_index(c, index, size);
  return out;
}

/// Offsets into data of the index tuples that the last axis of `indices` holds; `batch_dims` axes
/// are shared. Tuples lie in row-major order. For results that are not empty: the list is no longer
/// than they are.
std::vector<int64_t> tuple_offsets(const Call& c, const Tensor& indices, const Shape& data,
                                   size_t batch_dims);

}  // namespace dais
