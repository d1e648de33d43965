#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais::cpu {

/// to[columns, rows] = from[rows, columns] transposed, on the pool.
void turn_matrix(Isa isa, int64_t rows, int64_t columns, const float* from, float* to);

}  // namespace dais::cpu
