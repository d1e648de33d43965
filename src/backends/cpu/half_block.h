#pragma once

#include <cstdint>

namespace dais::cpu {

/// Windows over the cells of a channels-last image of two axes. Tap (i, j) of cell (p, q) reads row
/// (p * step + i * tap_step + start) / divide where that is whole and inside the image, else zeros;
/// columns likewise. With divide 1 these are the windows of a convolution, with its stride as
/// divide those of the gradient of its input.
struct HalfWindows {
  int64_t size[2] = {};             ///< of the image
  int64_t pixel = 0, channels = 0;  ///< numbers from column to column, and read of each
  int64_t cells[2] = {};            ///< of one image of the batch
  int64_t kernel[2] = {1, 1}, step[2] = {1, 1}, tap_step[2] = {1, 1}, start[2] = {};
  int64_t divide[2] = {1, 1};

  int64_t taps() const { return kernel[0] * kernel[1]; }
};

/// Channels of a tap are followed by zeros up to a multiple of this.
constexpr int64_t kHalfStep = 32;
constexpr int64_t half_padded(int64_t channels) {
  return (channels + kHalfStep - 1) / kHalfStep * kHalfStep;
}

/// A factor of a product in bf16: lines of numbers side by side. Lines of A are rows of the product
/// and run along its depth, or the other way round where `turned`; lines of B are of the depth and
/// run along columns, or the other way round. With windows there is one line for each cell: its
/// taps, one after the other, each padded (half_padded).
struct HalfFactor {
  const uint16_t* data = nullptr;
  int64_t line = 0;  ///< numbers from one line to the next
  bool turned = false;
  const HalfWindows* windows = nullptr;
};

/// c[rows, columns] = a * b + bias, summed in f32 and stored as f32 or rounded to bf16.
struct HalfBlock {
  int64_t rows = 0, columns = 0, depth = 0;
  HalfFactor a = {}, b = {};
  void* c = nullptr;
  int64_t c_row = 0;
  bool c_half = true;
  const uint16_t* bias = nullptr;    ///< one number for each column, bf16; null: none
  const float* wide_bias = nullptr;  ///< the same in f32
};

/// What one thread does at a time: rows [m0, m1), columns [n0, n1), beginning at multiples of 32.
struct HalfPart {
  int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0;
};
constexpr int64_t kHalfRows = 512;                        ///< most of a part
constexpr int64_t kHalfColumns = 512;                     ///< most of a part
constexpr int64_t kHalfSums = 1 << 17;                    ///< most numbers of a part
constexpr int64_t kHalfDepth = 512;                       ///< that is held at a time
constexpr int64_t kHalfHeld = kHalfColumns * kHalfDepth;  ///< numbers of B that are held
/// Whether all columns of a part are held at once.
constexpr bool half_holds(const HalfPart& part, int64_t depth) {
  return half_padded(part.n1 - part.n0) * half_padded(depth) <= kHalfHeld;
}
constexpr int64_t kHalfMostDepth = kHalfRows * kHalfDepth / 32;  ///< with a packed factor

}  // namespace dais::cpu
