// Pooling loops. Channels-last windows fold whole vectors of channels, which stay in registers over
// the window; bound by loads. Row-major ones fold rows of a plane, cell by cell of the window.

#include "ops/lanes.h"
#include "ops/pool/pool_loops.h"

namespace dais::DAIS_ISA {
namespace {

constexpr float kLowest = -__builtin_inff();

struct Range {
  int64_t first, last;  ///< cells of the window that see real elements
};

Range cells_seen(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  Range out{0, kernel};
  if (start < 0) out.first = (-start + dilation - 1) / dilation;
  const int64_t past = size - start;
  const int64_t limit = past <= 0 ? 0 : (past + dilation - 1) / dilation;
  if (limit < out.last) out.last = limit;
  if (out.first > out.last) out.first = out.last;
  return out;
}

template <bool average>
Lanes fold(Lanes sum, Lanes value) {
  return average ? sum + value : larger_or_nan(sum, value);
}

/// One output position of `blocks` vectors of channels (the last may be partial).
template <bool average, int64_t blocks, bool partial>
void position(const PoolSizes& s, const float* x, const int64_t start[3], const Range range[3],
              float factor, float* y, int64_t tail) {
  Lanes sum[blocks];
  for (int64_t b = 0; b < blocks; ++b) sum[b] = splat(average ? 0 : kLowest);
  for (int64_t d = range[0].first; d < range[0].last; ++d)
    for (int64_t h = range[1].first; h < range[1].last; ++h) {
      const int64_t row = (start[0] + d * s.dilation[0]) * s.in[1] + start[1] + h * s.dilation[1];
      for (int64_t w = range[2].first; w < range[2].last; ++w) {
        const float* from = x + (row * s.in[2] + start[2] + w * s.dilation[2]) * s.channels;
        for (int64_t b = 0; b < blocks; ++b) {
          const bool last = partial && b == blocks - 1;
          const Lanes value = last ? load_part(from + b * kLanes, tail) : load(from + b * kLanes);
          sum[b] = fold<average>(sum[b], value);
        }
      }
    }
  for (int64_t b = 0; b < blocks; ++b) {
    const Lanes result = average ? sum[b] * splat(factor) : sum[b];
    if (partial && b == blocks - 1)
      store_part(y + b * kLanes, result, tail);
    else
      store(y + b * kLanes, result);
  }
}

template <bool average>
void pool_rows(const PoolSizes& s, const float* x, float* y, int64_t first, int64_t last) {
  const int64_t image = s.in[0] * s.in[1] * s.in[2] * s.channels;
  for (int64_t row = first; row < last; ++row) {
    const int64_t n = row / (s.out[0] * s.out[1]), place = row % (s.out[0] * s.out[1]);
    const float* from = x + n * image;
    int64_t start[3] = {place / s.out[1] * s.stride[0] - s.begin[0],
                        place % s.out[1] * s.stride[1] - s.begin[1], 0};
    Range range[3] = {cells_seen(start[0], s.kernel[0], s.dilation[0], s.in[0]),
                      cells_seen(start[1], s.kernel[1], s.dilation[1], s.in[1]),
                      {0, 0}};
    for (int64_t w = 0; w < s.out[2]; ++w) {
      start[2] = w * s.stride[2] - s.begin[2];
      range[2] = cells_seen(start[2], s.kernel[2], s.dilation[2], s.in[2]);
      const float factor = average ? s.factors[place * s.out[2] + w] : 1;
      float* to = y + (row * s.out[2] + w) * s.channels;
      int64_t c = 0;
      for (; c + 4 * kLanes <= s.channels; c += 4 * kLanes)
        position<average, 4, false>(s, from + c, start, range, factor, to + c, 0);
      for (; c + kLanes <= s.channels; c += kLanes)
        position<average, 1, false>(s, from + c, start, range, factor, to + c, 0);
      if (c < s.channels)
        position<average, 1, true>(s, from + c, start, range, factor, to + c, s.channels - c);
    }
  }
}

template <bool average>
float fold_one(float sum, float value) {
  if (average) return sum + value;
  return value > sum || value != value ? value : sum;
}

template <bool average, int64_t fixed_stride>
void fold_row(const float* from, float* to, int64_t count, int64_t stride) {
  const int64_t step = fixed_stride > 0 ? fixed_stride : stride;
  for (int64_t i = 0; i < count; ++i) to[i] = fold_one<average>(to[i], from[i * step]);
}

/// Folds one cell of the window of one input row into an output row.
template <bool average>
void fold_cell(const PoolSizes& s, const float* row, int64_t cell, float* to) {
  const int64_t shift = cell * s.dilation[2] - s.begin[2], stride = s.stride[2];
  const int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t past = s.in[2] - shift;
  int64_t high = past <= 0 ? 0 : (past + stride - 1) / stride;
  if (high > s.out[2]) high = s.out[2];
  if (low >= high) return;
  const float* from = row + low * stride + shift;
  if (stride == 1) return fold_row<average, 1>(from, to + low, high - low, 1);
  if (stride == 2) return fold_row<average, 2>(from, to + low, high - low, 2);
  fold_row<average, 0>(from, to + low, high - low, stride);
}

template <bool average>
void pool_plane(const PoolSizes& s, const float* x, float* y) {
  for (int64_t d = 0; d < s.out[0]; ++d)
    for (int64_t h = 0; h < s.out[1]; ++h) {
      const int64_t place = d * s.out[1] + h;
      float* to = y + place * s.out[2];
      for (int64_t w = 0; w < s.out[2]; ++w) to[w] = average ? 0 : kLowest;
      const int64_t z = d * s.stride[0] - s.begin[0], v = h * s.stride[1] - s.begin[1];
      const Range depth = cells_seen(z, s.kernel[0], s.dilation[0], s.in[0]);
      const Range height = cells_seen(v, s.kernel[1], s.dilation[1], s.in[1]);
      for (int64_t a = depth.first; a < depth.last; ++a)
        for (int64_t b = height.first; b < height.last; ++b) {
          const int64_t row = (z + a * s.dilation[0]) * s.in[1] + v + b * s.dilation[1];
          for (int64_t c = 0; c < s.kernel[2]; ++c) fold_cell<average>(s, x + row * s.in[2], c, to);
        }
      for (int64_t w = 0; average && w < s.out[2]; ++w) to[w] *= s.factors[place * s.out[2] + w];
    }
}

template <bool average>
void fold_columns(const float* x, int64_t cells, int64_t stride, int64_t width, float* y) {
  const auto part = [&](int64_t c, int64_t count) {
    constexpr int64_t chains = 4;
    Lanes sum[chains];
    for (Lanes& one : sum) one = splat(average ? 0 : kLowest);
    const auto value = [&](int64_t cell) {
      const float* from = x + cell * stride + c;
      return count == kLanes ? load(from) : load_part(from, count);
    };
    int64_t cell = 0;
    for (; cell + chains <= cells; cell += chains)
      for (int64_t i = 0; i < chains; ++i) sum[i] = fold<average>(sum[i], value(cell + i));
    for (; cell < cells; ++cell) sum[0] = fold<average>(sum[0], value(cell));
    for (int64_t i = 1; i < chains; ++i) sum[0] = fold<average>(sum[0], sum[i]);
    if (average) sum[0] = sum[0] / splat(static_cast<float>(cells));
    store_part(y + c, sum[0], count);
  };
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) part(c, kLanes);
  if (c < width) part(c, width - c);
}

template <bool average>
float fold_plane(const float* x, int64_t cells) {
  constexpr int64_t chains = 4;
  Lanes sum[chains];
  for (Lanes& one : sum) one = splat(average ? 0 : kLowest);
  int64_t i = 0;
  for (; i + chains * kLanes <= cells; i += chains * kLanes)
    for (int64_t k = 0; k < chains; ++k) sum[k] = fold<average>(sum[k], load(x + i + k * kLanes));
  for (int64_t k = 1; k < chains; ++k) sum[0] = fold<average>(sum[0], sum[k]);
  float out = average ? 0 : kLowest;
  for (int64_t k = 0; k < kLanes; ++k) out = fold_one<average>(out, sum[0][k]);
  for (; i < cells; ++i) out = fold_one<average>(out, x[i]);
  return average ? out / static_cast<float>(cells) : out;
}

}  // namespace

void rows(const PoolSizes& s, const float* x, float* y, int64_t first, int64_t last) {
  s.average ? pool_rows<true>(s, x, y, first, last) : pool_rows<false>(s, x, y, first, last);
}

void planes(const PoolSizes& s, const float* x, float* y, int64_t first, int64_t last) {
  const int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
  for (int64_t plane = first; plane < last; ++plane) {
    if (s.average)
      pool_plane<true>(s, x + plane * in, y + plane * out);
    else
      pool_plane<false>(s, x + plane * in, y + plane * out);
  }
}

void columns(bool average, const float* x, int64_t cells, int64_t stride, int64_t width, float* y) {
  average ? fold_columns<true>(x, cells, stride, width, y)
          : fold_columns<false>(x, cells, stride, width, y);
}

float plane(bool average, const float* x, int64_t cells) {
  return average ? fold_plane<true>(x, cells) : fold_plane<false>(x, cells);
}

extern const PoolLoops pool_loops;
const PoolLoops pool_loops{rows, planes, columns, plane};

}  // namespace dais::DAIS_ISA
