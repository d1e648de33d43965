#pragma once

// Where a coordinate of a grid lies along an axis of the image, for the CPU and for devices.
#ifndef DAIS_SHARED
#include <cmath>

#include "base/shared_text.h"
#endif

namespace dais {

enum class SamplePadding { zeros, border, reflection };
enum class SampleMode { nearest, linear, cubic };

/// How many elements a place takes along each axis.
DAIS_SHARED constexpr int sample_taps(SampleMode mode) {
  return mode == SampleMode::nearest ? 1 : mode == SampleMode::linear ? 2 : 4;
}

/// Sampling along one axis of the image.
class AxisSampler {
 public:
  /// sample_taps elements and their weights; index -1 stands for zero.
  struct Taps {
    long long index[4];
    float weight[4];
  };

  DAIS_SHARED AxisSampler(long long size, SampleMode mode, SamplePadding padding,
                          bool align_corners)
      : size_(size), mode_(mode), padding_(padding), align_corners_(align_corners) {}

  DAIS_SHARED Taps at(float place) const {
    const float size = static_cast<float>(size_);
    float x = align_corners_ ? (place + 1) / 2 * (size - 1) : ((place + 1) * size - 1) / 2;
    if (mode_ == SampleMode::nearest) x = rintf(x);
    // Far outside is far enough; NaN goes there too.
    x = !(x >= -1e9f) ? -1e9f : x > 1e9f ? 1e9f : x;
    const float low = align_corners_ ? 0 : -0.5f;
    const float high = align_corners_ ? size - 1 : size - 0.5f;
    if ((x < low || x > high) && padding_ == SamplePadding::border)
      x = x < 0 ? 0 : size - 1;
    if ((x < low || x > high) && padding_ == SamplePadding::reflection) x = reflect(x, low, high);
    if (mode_ == SampleMode::nearest) return {{element(static_cast<long long>(x))}, {1}};
    const float base = floorf(x), t = x - base;
    const auto first = static_cast<long long>(base);
    if (mode_ == SampleMode::linear) return {{element(first), element(first + 1)}, {1 - t, t}};
    return {{element(first - 1), element(first), element(first + 1), element(first + 2)},
            {outer(1 + t), inner(t), inner(1 - t), outer(2 - t)}};
  }

 private:
  /// Keys' cubic kernel with a = -0.75, for distances up to 1 and from 1 to 2.
  DAIS_SHARED static float inner(float x) { return (1.25f * x - 2.25f) * x * x + 1; }
  DAIS_SHARED static float outer(float x) { return ((-0.75f * x + 3.75f) * x - 6) * x + 3; }

  DAIS_SHARED static float reflect(float x, float low, float high) {
    const float range = high - low;
    if (!(range > 0)) return low;
    const float distance = x < low ? low - x : x - high;
    const float turns = truncf(distance / range), rest = distance - turns * range;
    const bool even = fmodf(turns, 2.0f) == 0;
    return (x < low) == even ? low + rest : high - rest;
  }

  DAIS_SHARED long long within(long long index) const {
    return index < 0 ? 0 : index < size_ ? index : size_ - 1;
  }

  DAIS_SHARED long long element(long long index) const {
    if (index >= 0 && index < size_) return index;
    if (padding_ == SamplePadding::zeros) return -1;
    if (padding_ == SamplePadding::border) return within(index);
    const float low = align_corners_ ? 0 : -0.5f;
    const float high = static_cast<float>(size_) - (align_corners_ ? 1 : 0.5f);
    return within(static_cast<long long>(reflect(static_cast<float>(index), low, high)));
  }

  long long size_;
  SampleMode mode_;
  SamplePadding padding_;
  bool align_corners_;
};

}  // namespace dais
