#pragma once

#include "ops/strided.h"

namespace dais {

/// Copies the elements of one iteration space between two tensors of the same element type:
/// to[to_start + index·to_steps] = from[from_start + index·from_steps]. The caller makes sure that
/// every index lies inside.
void copy_strided(const Shape& space, const Tensor& from, int64_t from_start,
                  const Strides& from_steps, Tensor& to, int64_t to_start, const Strides& to_steps);

/// Row-major steps of a dense tensor.
Strides dense_steps(const Shape& shape);

/// Fills `to`, whose axes are those of `from` in the order `perm`.
void copy_transposed(const Tensor& from, const std::vector<size_t>& perm, Tensor& to);

}  // namespace dais
