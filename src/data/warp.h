#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ir/tensor.h"

namespace dais::data {

/// A geometric change of an image: where each pixel of the result comes from. The steps are applied
/// in the order of the calls. Flips, turns and crops alone move whole pixels; after a rotation
/// pixels are interpolated.
class Warp {
 public:
  Warp(int64_t height, int64_t width) : height_(height), width_(width) {}

  void flip_horizontal() { then({-1, 0, static_cast<double>(width_), 0, 1, 0}); }
  void flip_vertical() { then({1, 0, 0, 0, -1, static_cast<double>(height_)}); }
  /// Quarter turns, clockwise; an odd number needs a square.
  void turn(int64_t quarters);
  /// About the middle, by radians clockwise, growing by `scale`.
  void rotate(double angle, double scale);
  /// Cuts height x width at (y, x), which may reach beyond the image.
  void crop(int64_t y, int64_t x, int64_t height, int64_t width);

  /// u8 [H, W, C] moved; what lies outside the source becomes `outside`.
  Tensor image(const Tensor& source, uint8_t outside) const;
  /// u8 [H, W] moved, by the nearest pixel.
  Tensor mask(const Tensor& source, uint8_t outside) const;
  /// x1 y1 x2 y2 moved and clipped; nothing when less than a quarter of it stays inside.
  std::optional<std::array<float, 4>> box(const float* corners) const;

 private:
  /// A point of the result (x, y) comes from (m0 x + m1 y + m2, m3 x + m4 y + m5) of the source;
  /// pixel i covers i to i + 1.
  using Matrix = std::array<double, 6>;
  void then(const Matrix& step);  ///< `step` leads from the new result to the old one
  template <typename Sampler>
  void for_each_pixel(const Sampler& sampler) const;

  Matrix to_source_{1, 0, 0, 0, 1, 0};
  int64_t height_, width_;  ///< of the result
  bool whole_pixels_ = true;
};

}  // namespace dais::data
