#pragma once

#include "ir/tensor.h"

namespace dais {

/// For every axis, which index of the source each index of the result shows; -1: none.
using IndexMaps = std::vector<std::vector<int64_t>>;

/// to[i, j, …] = from[maps[0][i], maps[1][j], …]; elements whose index is missing on any axis are
/// `fill`, a tensor of one element (absent: zero bits or empty strings).
void copy_mapped(const Tensor& from, const IndexMaps& maps, const Tensor& fill, Tensor& to);

}  // namespace dais
