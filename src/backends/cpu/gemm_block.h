#pragma once

#include <cstdint>

namespace dais::cpu {

/// What may follow a product before it is stored; steps run in order on each value.
struct GemmStep {
  enum class Kind : uint8_t {
    scale,         ///< times `value`
    shift,         ///< plus `value`
    column,        ///< plus operand[n]
    scale_column,  ///< times operand[n]
    tensor,        ///< plus operand[m * row + n]
    scale_tensor,  ///< times operand[m * row + n]
    relu,
    clip,  ///< between `value` and `high`
    gelu,
    gelu_tanh,
    silu,
    tanh,
    sigmoid,
  };
  Kind kind = Kind::scale;
  float value = 1, high = 0;
  const float* operand = nullptr;
  int64_t row = 0;  ///< elements between rows of `operand`; 0: the same row for all
};

constexpr int64_t kMaxGemmSteps = 12;
constexpr int64_t kWindowStep = 32;
constexpr int64_t window_depth(int64_t tap) {
  return (tap + kWindowStep - 1) / kWindowStep * kWindowStep;
}

/// c[rows, columns] = steps(a * b), all f32. b is read in panels of panel_columns() columns:
/// `panel` elements apart, rows of a panel `b_row` apart. A packed b has panel = depth *
/// panel_columns, b_row = panel_columns (and zeros behind the last column); a plain one with unit
/// column stride panel = panel_columns, b_row = its row stride.
struct GemmBlock {
  const float* a = nullptr;
  int64_t a_row = 0;
  /// Where given, rows of A are windows of a channels-last image: the depth has taps of `tap`
  /// numbers, each padded with zeros to a multiple of kWindowStep; tap t of row m is at
  /// a + windows[t * rows + m], or zero where that is negative.
  const int32_t* windows = nullptr;
  int64_t tap = 0;
  const float* b = nullptr;
  int64_t b_row = 0, panel = 0;
  bool packed = false;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t rows = 0, columns = 0, depth = 0;
  const GemmStep* steps = nullptr;
  int64_t step_count = 0;  ///< at most kMaxGemmSteps
};

/// Rows [m0, m1) and depth [k0, k1) of A that a thread holds cut up for the tile unit: at most
/// kTileRowBlock rows, and kTileHeld numbers with rows rounded up to kTileStrip and the depth to
/// kTileStretch.
struct GemmPart {
  int64_t m0 = 0, m1 = 0, k0 = 0, k1 = 0;
};
constexpr int64_t kTileStrip = 16, kTileStretch = 96;
constexpr int64_t kTileRowBlock = 512, kTileHeld = int64_t{192} * 1024;

}  // namespace dais::cpu
