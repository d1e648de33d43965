#pragma once

#include <cstdint>

namespace dais {

/// Weights of 4 bits, packed for sixteen columns at a time, times rows of 8-bit activations.
/// A panel holds, for each block of the depth: sixteen scales, sixteen scales times zero points
/// where these differ from 8, and then for every 32 of the depth 256 bytes: vector v holds in
/// byte 4 n + j of column n the numbers 8 v + j (low half) and 8 v + 4 + j (high half).
struct NbitsProduct {
  const uint8_t* panels = nullptr;
  int64_t panel_bytes = 0;
  int64_t columns = 0, blocks = 0, block_size = 0;
  bool zero_points = false;
  /// [rows, blocks * block_size] activations, their scales [rows, blocks], and minus 8 times (or,
  /// with zero points, minus once) their sums.
  const int8_t* a = nullptr;
  const float* a_scales = nullptr;
  const int32_t* a_sums = nullptr;
  const float* bias = nullptr;  ///< [columns] or null
  float* c = nullptr;           ///< [rows, columns]
  int64_t rows = 0;
};

}  // namespace dais
