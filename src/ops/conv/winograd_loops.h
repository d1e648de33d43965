#pragma once

#include <cstdint>

#include "ops/conv/loop_step.h"

namespace dais {

/// Winograd's F(4x4, 3x3) on channels-last f32 activations, stride 1, any dilation. The result is
/// cut into tiles of 4x4 positions (dilation apart); 36 products over channels make one tile.
struct WinogradSizes {
  int64_t height = 0, width = 0, in_channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_y = 1, dilation_x = 1;
  int64_t tiles_y = 0, tiles_x = 0;  ///< of one phase of the dilation
  int64_t tiles = 0;                 ///< of all phases and examples

  int64_t tiles_of_example() const { return tiles_y * tiles_x * dilation_y * dilation_x; }
};

/// Vectors of 16 output channels that are computed together, at most 4.
inline constexpr int64_t kWinogradChannels = 16;
inline constexpr int64_t kWinogradVectors = 4;
inline constexpr int64_t kWinogradCells = 36;

/// The points 0, A, -A, B, -B and infinity of the transform. Every coefficient made of them is
/// exact in f32; of the pairs of sixteenths they lose least (see docs/decisions/winograd.md).
inline constexpr float kWinogradNear = 0.625F, kWinogradFar = 1.5F;

/// Input channels as they lie in transformed memory.
inline int64_t winograd_depth(int64_t channels) {
  return (channels + kWinogradChannels - 1) / kWinogradChannels * kWinogradChannels;
}

/// Loops for AVX-512.
struct WinogradLoops {
  /// Transforms `count` tiles from `first` on: to[cell][tile][winograd_depth(in_channels)].
  void (*enter)(const WinogradSizes& sizes, const float* x, int64_t first, int64_t count,
                float* to);
  /// to[cell][tile][vectors * 16] = v[cell][tile] * u[cell][in channel][vectors * 16].
  void (*multiply)(int64_t count, int64_t depth, int64_t in_channels, int64_t vectors,
                   const float* v, const float* u, float* to);
  /// Transforms back, adds `bias` (may be null) and applies the steps to output channels from
  /// `channel` on.
  void (*leave)(const WinogradSizes& sizes, const float* from, int64_t first, int64_t count,
                int64_t channel, int64_t vectors, const float* bias, const LoopSteps& steps,
                float* y);
};

namespace avx512 {
extern const WinogradLoops winograd_loops;
}

}  // namespace dais
