#pragma once

#include <algorithm>

#include "base/threads.h"
#include "ops/conv/conv_loops.h"
#include "ops/window.h"

/// What the rows of convolutions share.
namespace dais {

/// Scratch memory is booked in whole cache lines.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Copies one activation between row-major and channels-last order.
struct Relayout {
  int64_t batch = 1, rows = 1, columns = 1;  ///< each batch entry is a matrix that is transposed

  void run(const ConvLoops& loops, const float* from, float* to) const {
    constexpr int64_t band = 64, grain = 4;
    const int64_t bands = (columns + band - 1) / band;
    parallel_for(batch * bands, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t n = task / bands, begin = task % bands * band;
        const int64_t count = std::min(band, columns - begin);
        loops.transpose(from + n * rows * columns + begin, rows, count, columns,
                        to + (n * columns + begin) * rows, rows);
      }
    });
  }
  size_t bytes() const { return static_cast<size_t>(batch * rows * columns) * sizeof(float); }
};

inline Relayout to_channels_last(const Shape& shape) {
  const Activation sizes(shape, false);
  return {sizes.batch, sizes.channels, sizes.cells()};
}
inline Relayout to_row_major(const Shape& shape) {
  const Activation sizes(shape, false);
  return {sizes.batch, sizes.cells(), sizes.channels};
}

/// The sizes of a oneDNN description.
template <typename Desc>
void fill_sizes(Desc& desc, const Activation& x, const Activation& y, int64_t groups) {
  desc.batch = x.batch;
  desc.in_channels = x.channels;
  desc.out_channels = y.channels;
  desc.groups = groups;
  desc.in_spatial = x.space;
}

}  // namespace dais
