#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ir/tensor.h"
#include "ops/grid_sample/grid_sample.h"

namespace dais {

enum class SamplePadding { zeros, border, reflection };
enum class SampleMode { nearest, linear, cubic };

/// Sampling along one axis of the image.
class AxisSampler {
 public:
  /// Up to four elements and their weights; index -1 stands for zero.
  struct Taps {
    std::array<int64_t, 4> index;
    std::array<float, 4> weight;
    int count;
  };

  AxisSampler(int64_t size, SampleMode mode, SamplePadding padding, bool align_corners)
      : size_(size), mode_(mode), padding_(padding), align_corners_(align_corners) {}

  Taps at(float place) const {
    const float size = static_cast<float>(size_);
    float x = align_corners_ ? (place + 1) / 2 * (size - 1) : ((place + 1) * size - 1) / 2;
    if (mode_ == SampleMode::nearest) x = std::nearbyint(x);
    // Far outside is far enough; NaN goes there too.
    x = std::isnan(x) ? -1e9f : std::clamp(x, -1e9f, 1e9f);
    const float low = align_corners_ ? 0 : -0.5f;
    const float high = align_corners_ ? size - 1 : size - 0.5f;
    if ((x < low || x > high) && padding_ == SamplePadding::border)
      x = std::clamp(x, 0.0f, size - 1);
    if ((x < low || x > high) && padding_ == SamplePadding::reflection) x = reflect(x, low, high);
    if (mode_ == SampleMode::nearest) return {{element(static_cast<int64_t>(x))}, {1}, 1};
    const float base = std::floor(x), t = x - base;
    const auto first = static_cast<int64_t>(base);
    if (mode_ == SampleMode::linear) return {{element(first), element(first + 1)}, {1 - t, t}, 2};
    return {{element(first - 1), element(first), element(first + 1), element(first + 2)},
            {outer(1 + t), inner(t), inner(1 - t), outer(2 - t)},
            4};
  }

 private:
  /// Keys' cubic kernel with a = -0.75, for distances up to 1 and from 1 to 2.
  static float inner(float x) { return (1.25f * x - 2.25f) * x * x + 1; }
  static float outer(float x) { return ((-0.75f * x + 3.75f) * x - 6) * x + 3; }

  static float reflect(float x, float low, float high) {
    const float range = high - low;
    if (!(range > 0)) return low;
    const float distance = x < low ? low - x : x - high;
    const float turns = std::trunc(distance / range), rest = distance - turns * range;
    const bool even = std::fmod(turns, 2.0f) == 0;
    return (x < low) == even ? low + rest : high - rest;
  }

  int64_t element(int64_t index) const {
    if (index >= 0 && index < size_) return index;
    if (padding_ == SamplePadding::zeros) return -1;
    if (padding_ == SamplePadding::border) return std::clamp<int64_t>(index, 0, size_ - 1);
    const float low = align_corners_ ? 0 : -0.5f;
    const float high = static_cast<float>(size_) - (align_corners_ ? 1 : 0.5f);
    const auto mirrored = static_cast<int64_t>(reflect(static_cast<float>(index), low, high));
    return std::clamp<int64_t>(mirrored, 0, size_ - 1);
  }

  int64_t size_;
  SampleMode mode_;
  SamplePadding padding_;
  bool align_corners_;
};

/// One for each axis of the image behind its batch and channels.
inline std::vector<AxisSampler> make_samplers(const GridSample& attrs, const Shape& image) {
  const SampleMode mode = attrs.mode == "nearest"  ? SampleMode::nearest
                          : attrs.mode == "linear" ? SampleMode::linear
                                                   : SampleMode::cubic;
  const SamplePadding padding = attrs.padding_mode == "zeros"    ? SamplePadding::zeros
                                : attrs.padding_mode == "border" ? SamplePadding::border
                                                                 : SamplePadding::reflection;
  std::vector<AxisSampler> out;
  for (size_t axis = 2; axis < image.rank(); ++axis)
    out.emplace_back(image[axis], mode, padding, attrs.align_corners);
  return out;
}

}  // namespace dais
