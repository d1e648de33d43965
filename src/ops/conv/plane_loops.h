#pragma once

#include <cstdint>

#include "base/isa.h"
#include "ops/conv/loop_step.h"

namespace dais {

/// Depthwise convolution of row-major planes, two spatial axes: every channel has one window.
struct PlaneSizes {
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  int64_t kernel_y = 1, kernel_x = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int64_t pad_top = 0, pad_left = 0;

  /// Padded columns are held by their remainder modulo the stride, so that the elements one tap
  /// needs are neighbours: floats of one such part of a row, and of a whole row.
  int64_t part_floats() const {
    return (out_width + (kernel_x - 1) * dilation_x / stride_x + 16 + 15) / 16 * 16;
  }
  int64_t row_floats() const { return part_floats() * stride_x; }
  /// Input rows that `count` rows of the result look at.
  int64_t rows_of(int64_t count) const {
    return (count - 1) * stride_y + (kernel_y - 1) * dilation_y + 1;
  }
};

/// Loops for a level.
struct PlaneLoops {
  /// Copies input rows [first, first + count) of the padded plane to `to`, with zeros outside.
  void (*enter)(const PlaneSizes& sizes, const float* plane, int64_t first, int64_t count,
                float* to);
  /// Rows [first, first + count) of one plane of the result from the rows that enter() made for
  /// them. `element` is the place of y's first element in the whole result; steps that have an
  /// operand per channel are not taken.
  void (*convolve)(const PlaneSizes& sizes, const float* rows, const float* weights, float bias,
                   const LoopSteps& steps, int64_t first, int64_t count, int64_t element, float* y);
};

const PlaneLoops& plane_loops(Isa isa);

}  // namespace dais
