#pragma once

#include <cstdint>

namespace dais::cpu {

/// What the loops of peaks_simd.cpp work on, and room for their results.
struct alignas(64) BurstData {
  float numbers[32];
  int8_t bytes[4096];
  float out[16];
};

}  // namespace dais::cpu
