// Winograd's minimal filtering F(4x4, 3x3): 36 multiplications for 16 results of 9 taps. Tiles
// enter and leave the transformed domain by vectors of 16 channels; between, one product of
// matrices per cell, in blocks of 24 accumulators. Bound by multiply-adds when weights come from
// the L2 cache, by the L3 cache when they are larger.

#include "ops/conv/epilogue_loops.h"
#include "ops/conv/winograd_loops.h"

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL == 2
namespace {

constexpr int64_t kSide = 6, kOut = 4;
constexpr float kNear = kWinogradNear, kFar = kWinogradFar;

/// Where a tile lies: its example and the first of its result positions.
struct Place {
  int64_t example, y, x;
};

Place place_of(const WinogradSizes& s, int64_t tile) {
  const int64_t each = s.tiles_of_example();
  Place out{tile / each, 0, 0};
  int64_t rest = tile % each;
  const int64_t column = rest % s.tiles_x;
  rest /= s.tiles_x;
  const int64_t row = rest % s.tiles_y;
  rest /= s.tiles_y;
  out.y = row * kOut * s.dilation_y + rest / s.dilation_x;
  out.x = column * kOut * s.dilation_x + rest % s.dilation_x;
  return out;
}

/// Six input values to six transformed ones: the coefficients of the polynomial with the roots 0,
/// A, -A, B, -B and infinity without one root each.
inline void enter_line(const Lanes d[kSide], Lanes t[kSide]) {
  const Lanes a2 = splat(-kNear * kNear), b2 = splat(-kFar * kFar);
  const Lanes sum = splat(-(kNear * kNear + kFar * kFar));
  const Lanes product = splat(kNear * kNear * kFar * kFar);
  const Lanes near_even = multiply_add(b2, d[2], d[4]), near_odd = multiply_add(b2, d[1], d[3]);
  const Lanes far_even = multiply_add(a2, d[2], d[4]), far_odd = multiply_add(a2, d[1], d[3]);
  t[0] = multiply_add(product, d[0], multiply_add(sum, d[2], d[4]));
  t[1] = multiply_add(splat(kNear), near_odd, near_even);
  t[2] = multiply_add(splat(-kNear), near_odd, near_even);
  t[3] = multiply_add(splat(kFar), far_odd, far_even);
  t[4] = multiply_add(splat(-kFar), far_odd, far_even);
  t[5] = multiply_add(product, d[1], multiply_add(sum, d[3], d[5]));
}

/// Six transformed values to four results.
inline void leave_line(const Lanes m[kSide], Lanes s[kOut]) {
  constexpr float a = kNear, b = kFar;
  const Lanes sum = m[1] + m[2], difference = m[1] - m[2];
  const Lanes far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  s[0] = m[0] + sum + far_sum;
  s[1] = multiply_add(splat(a), difference, splat(b) * far_difference);
  s[2] = multiply_add(splat(a * a), sum, splat(b * b) * far_sum);
  s[3] = multiply_add(splat(a * a * a), difference,
                      multiply_add(splat(b * b * b), far_difference, m[5]));
}

/// One tile of up to 16 channels. `rows` and `columns`: offsets of the six lines, -1 outside.
void enter_tile(const float* x, const int64_t rows[kSide], const int64_t columns[kSide],
                int64_t count, float* to, int64_t step) {
  Lanes half[kSide][kSide];
  for (int64_t j = 0; j < kSide; ++j) {
    Lanes d[kSide], t[kSide];
    for (int64_t i = 0; i < kSide; ++i) {
      if (rows[i] < 0 || columns[j] < 0)
        d[i] = Lanes{};
      else
        d[i] = count == kLanes ? load(x + rows[i] + columns[j])
                               : load_part(x + rows[i] + columns[j], count);
    }
    enter_line(d, t);
    for (int64_t i = 0; i < kSide; ++i) half[i][j] = t[i];
  }
  for (int64_t i = 0; i < kSide; ++i) {
    Lanes t[kSide];
    enter_line(half[i], t);
    for (int64_t j = 0; j < kSide; ++j) store(to + (i * kSide + j) * step, t[j]);
  }
}

/// `tiles` rows by `vectors` vectors of one cell's product.
template <int64_t tiles, int64_t vectors>
void multiply_block(const float* v, int64_t depth, int64_t in_channels, const float* u, float* to) {
  Lanes sum[tiles][vectors];
  for (int64_t t = 0; t < tiles; ++t)
    for (int64_t k = 0; k < vectors; ++k) sum[t][k] = Lanes{};
  for (int64_t c = 0; c < in_channels; ++c) {
    Lanes weights[vectors];
    for (int64_t k = 0; k < vectors; ++k) weights[k] = load(u + (c * vectors + k) * kLanes);
    for (int64_t t = 0; t < tiles; ++t) {
      const Lanes value = splat(v[t * depth + c]);
      for (int64_t k = 0; k < vectors; ++k) sum[t][k] = multiply_add(value, weights[k], sum[t][k]);
    }
  }
  for (int64_t t = 0; t < tiles; ++t)
    for (int64_t k = 0; k < vectors; ++k) store(to + (t * vectors + k) * kLanes, sum[t][k]);
}

template <int64_t vectors>
void multiply_cells(int64_t count, int64_t depth, int64_t in_channels, const float* v,
                    const float* u, float* to) {
  constexpr int64_t most = vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  for (int64_t cell = 0; cell < kWinogradCells; ++cell) {
    const float* rows = v + cell * count * depth;
    const float* weights = u + cell * in_channels * vectors * kLanes;
    float* out = to + cell * count * vectors * kLanes;
    int64_t t = 0;
    const auto block = [&]<int64_t tiles>() {
      multiply_block<tiles, vectors>(rows + t * depth, depth, in_channels, weights,
                                     out + t * vectors * kLanes);
    };
    for (; t + most <= count; t += most) block.template operator()<most>();
    for (; t + 4 <= count; t += 4) block.template operator()<4>();
    for (; t + 2 <= count; t += 2) block.template operator()<2>();
    if (t < count) block.template operator()<1>();
  }
}

/// Results of one tile for up to 16 channels.
void leave_tile(const float* from, int64_t step, Lanes out[kOut][kOut]) {
  Lanes half[kOut][kSide];
  for (int64_t j = 0; j < kSide; ++j) {
    Lanes m[kSide], s[kOut];
    for (int64_t i = 0; i < kSide; ++i) m[i] = load(from + (i * kSide + j) * step);
    leave_line(m, s);
    for (int64_t i = 0; i < kOut; ++i) half[i][j] = s[i];
  }
  for (int64_t i = 0; i < kOut; ++i) leave_line(half[i], out[i]);
}

}  // namespace

void enter(const WinogradSizes& s, const float* x, int64_t first, int64_t count, float* to) {
  const int64_t depth = winograd_depth(s.in_channels);
  for (int64_t t = 0; t < count; ++t) {
    const Place place = place_of(s, first + t);
    int64_t rows[kSide], columns[kSide];
    for (int64_t i = 0; i < kSide; ++i) {
      const int64_t y = place.y + i * s.dilation_y - s.pad_top;
      const int64_t z = place.x + i * s.dilation_x - s.pad_left;
      const int64_t row = place.example * s.height + y;
      rows[i] = y >= 0 && y < s.height ? row * s.width * s.in_channels : -1;
      columns[i] = z >= 0 && z < s.width ? z * s.in_channels : -1;
    }
    for (int64_t c = 0; c < s.in_channels; c += kLanes) {
      const int64_t rest = s.in_channels - c;
      enter_tile(x + c, rows, columns, rest < kLanes ? rest : kLanes, to + t * depth + c,
                 count * depth);
    }
  }
}

void multiply(int64_t count, int64_t depth, int64_t in_channels, int64_t vectors, const float* v,
              const float* u, float* to) {
  if (vectors == 4) return multiply_cells<4>(count, depth, in_channels, v, u, to);
  if (vectors == 3) return multiply_cells<3>(count, depth, in_channels, v, u, to);
  if (vectors == 2) return multiply_cells<2>(count, depth, in_channels, v, u, to);
  multiply_cells<1>(count, depth, in_channels, v, u, to);
}

void leave(const WinogradSizes& s, const float* from, int64_t first, int64_t count, int64_t channel,
           int64_t vectors, const float* bias, const LoopSteps& steps, float* y) {
  const int64_t width = vectors * kLanes;
  for (int64_t t = 0; t < count; ++t) {
    const Place place = place_of(s, first + t);
    for (int64_t k = 0; k < vectors; ++k) {
      const int64_t c = channel + k * kLanes, rest = s.out_channels - c;
      if (rest <= 0) break;
      const int64_t lanes = rest < kLanes ? rest : kLanes;
      const Lanes shift = bias ? load_part(bias + c, lanes) : Lanes{};
      Lanes out[kOut][kOut];
      leave_tile(from + t * width + k * kLanes, count * width, out);
      for (int64_t i = 0; i < kOut; ++i) {
        const int64_t row = place.y + i * s.dilation_y;
        if (row >= s.out_height) break;
        for (int64_t j = 0; j < kOut; ++j) {
          const int64_t column = place.x + j * s.dilation_x;
          if (column >= s.out_width) break;
          const int64_t cell = (place.example * s.out_height + row) * s.out_width + column;
          const int64_t element = cell * s.out_channels + c;
          store_part(y + element, apply_steps(steps, out[i][j] + shift, c, element, lanes), lanes);
        }
      }
    }
  }
}

const WinogradLoops winograd_loops{enter, multiply, leave};
#endif

}  // namespace dais::DAIS_ISA
