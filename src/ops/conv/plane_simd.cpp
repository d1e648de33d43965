// Depthwise convolution of row-major planes. Bound by loads: each vector of results takes one load
// and one multiply-add per tap, from padded rows in the first-level cache.

#include "ops/conv/epilogue_loops.h"
#include "ops/conv/plane_loops.h"

namespace dais::DAIS_ISA {
namespace {

void clear(float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

/// One row, its columns dealt out to `stride` parts.
void enter_row(const PlaneSizes& s, const float* from, float* to) {
  const int64_t part = s.part_floats();
  for (int64_t phase = 0; phase < s.stride_x; ++phase, to += part) {
    // Padded column phase + i * stride lies at column phase + i * stride - pad_left.
    const int64_t start = phase - s.pad_left;
    const int64_t before = start < 0 ? (-start + s.stride_x - 1) / s.stride_x : 0;
    const int64_t fitting =
        start < s.width ? (s.width - start + s.stride_x - 1) / s.stride_x : before;
    const int64_t begin = before < part ? before : part;
    const int64_t end = fitting < begin ? begin : fitting < part ? fitting : part;
    clear(to, begin);
    const float* x = from + start;
    int64_t i = begin;
    if (s.stride_x == 1)
      for (; i + kLanes <= end; i += kLanes) store(to + i, load(x + i));
    for (; i < end; ++i) to[i] = x[i * s.stride_x];
    clear(to + end, part - end);
  }
}

void enter(const PlaneSizes& s, const float* plane, int64_t first, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i, to += s.row_floats()) {
    const int64_t row = first + i - s.pad_top;
    if (row < 0 || row >= s.height)
      clear(to, s.row_floats());
    else
      enter_row(s, plane + row * s.width, to);
  }
}

/// Sums of `vectors` vectors from column `x` on, of the row of results whose first input row is at
/// `rows`.
template <int vectors>
inline void sum_taps(const PlaneSizes& s, const float* rows, const float* weights, int64_t x,
                     Lanes (&sums)[vectors]) {
  const int64_t down = s.dilation_y * s.row_floats(), part = s.part_floats();
  for (int64_t ky = 0; ky < s.kernel_y; ++ky, rows += down)
    for (int64_t kx = 0; kx < s.kernel_x; ++kx, ++weights) {
      const int64_t column = kx * s.dilation_x;
      const float* from = rows + column % s.stride_x * part + column / s.stride_x + x;
      const Lanes w = splat(*weights);
      for (int i = 0; i < vectors; ++i) sums[i] = multiply_add(w, load(from + i * kLanes), sums[i]);
    }
}

/// The same for 3x3 windows with a stride of 1 and neighbouring taps, weights held in registers.
template <int vectors>
inline void sum_nine(const float* rows, int64_t row, const Lanes (&w)[9], Lanes (&sums)[vectors]) {
#pragma GCC unroll 9
  for (int tap = 0; tap < 9; ++tap)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i)
      sums[i] = multiply_add(w[tap], load(rows + tap / 3 * row + tap % 3 + i * kLanes), sums[i]);
}

template <int vectors>
inline void put(const LoopSteps& steps, const Lanes (&sums)[vectors], int64_t element,
                int64_t count, float* y) {
  for (int i = 0; i < vectors; ++i, count -= kLanes, element += kLanes, y += kLanes) {
    const int64_t held = count < kLanes ? count : kLanes;
    const Lanes value = apply_steps(steps, sums[i], 0, element, held);
    held == kLanes ? store(y, value) : store_part(y, value, held);
  }
}

void convolve(const PlaneSizes& s, const float* rows, const float* weights, float bias,
              const LoopSteps& steps, int64_t first, int64_t count, int64_t element, float* y) {
  constexpr int kVectors = 4;
  const bool nine = s.kernel_y == 3 && s.kernel_x == 3 && s.stride_x == 1 && s.dilation_x == 1 &&
                    s.dilation_y == 1;
  Lanes w[9] = {};
  if (nine)
    for (int i = 0; i < 9; ++i) w[i] = splat(weights[i]);
  const int64_t row = s.row_floats();
  for (int64_t r = 0; r < count; ++r) {
    const float* from = rows + r * s.stride_y * row;
    const int64_t line = (first + r) * s.out_width;
    const auto block = [&](auto& sums, int64_t x) __attribute__((always_inline)) {
      for (auto& sum : sums) sum = splat(bias);
      if (nine)
        sum_nine(from + x, row, w, sums);
      else
        sum_taps(s, from, weights, x, sums);
      put(steps, sums, element + line + x, s.out_width - x, y + line + x);
    };
    int64_t x = 0;
    for (; s.out_width - x > (kVectors - 1) * kLanes; x += kVectors * kLanes) {
      Lanes sums[kVectors];
      block(sums, x);
    }
    for (; x < s.out_width; x += kLanes) {
      Lanes sums[1];
      block(sums, x);
    }
  }
}

}  // namespace

extern const PlaneLoops plane_loops;
const PlaneLoops plane_loops{enter, convolve};

}  // namespace dais::DAIS_ISA
