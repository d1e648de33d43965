#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais {

/// Raw loops of convolution kernels, one set per instruction set.
struct ConvLoops {
  /// to[c * to_stride + r] = from[r * from_stride + c] for a rows x columns matrix.
  void (*transpose)(const float* from, int64_t rows, int64_t columns, int64_t from_stride,
                    float* to, int64_t to_stride);
};

/// The loops for a level (the highest compiled one that it includes).
const ConvLoops& conv_loops(Isa isa);

}  // namespace dais
