#pragma once

#include <cstdint>

namespace dais {

/// Rotates the first 2 * half elements of a head by the angles whose cosines and sines are given.
inline void rotate_head(double* head, int64_t half, bool interleaved, const double* cos,
                        const double* sin) {
  for (int64_t i = 0; i < half; ++i) {
    double& a = head[interleaved ? 2 * i : i];
    double& b = head[interleaved ? 2 * i + 1 : half + i];
    const double real = cos[i] * a - sin[i] * b, imaginary = sin[i] * a + cos[i] * b;
    a = real;
    b = imaginary;
  }
}

}  // namespace dais
