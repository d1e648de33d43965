#include "ops/stft/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace dais {

Fft::Fft(size_t length, bool inverse) : length_(length), padded_(length), inverse_(inverse) {
  const bool direct = length == 0 || std::has_single_bit(length);
  if (!direct) padded_ = std::bit_ceil(2 * length - 1);
  for (size_t i = 0; i < padded_ / 2; ++i)
    roots_.push_back(std::polar(
        1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(padded_)));
  if (direct) return;
  const double sign = inverse ? 1 : -1;
  for (size_t i = 0; i < length; ++i) {
    // The square modulo twice the length keeps the angle small and exact.
    const auto square = static_cast<double>(i * i % (2 * length));
    chirp_.push_back(
        std::polar(1.0, sign * std::numbers::pi * square / static_cast<double>(length)));
  }
  spectrum_.assign(padded_, 0);
  for (size_t i = 0; i < length; ++i) {
    spectrum_[i] = std::conj(chirp_[i]);
    if (i > 0) spectrum_[padded_ - i] = std::conj(chirp_[i]);
  }
  power_of_two(spectrum_, roots_, false);
}

void Fft::power_of_two(std::vector<Complex>& values, const std::vector<Complex>& roots,
                       bool conjugate) {
  const size_t size = values.size();
  for (size_t i = 1, j = 0; i < size; ++i) {
    size_t bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (size_t half = 1; half < size; half *= 2) {
    const size_t step = size / (2 * half);
    for (size_t start = 0; start < size; start += 2 * half)
      for (size_t k = 0; k < half; ++k) {
        const Complex root = conjugate ? std::conj(roots[k * step]) : roots[k * step];
        const Complex a = values[start + k], b = values[start + k + half] * root;
        values[start + k] = a + b;
        values[start + k + half] = a - b;
      }
  }
}

void Fft::run(Complex* values) const {
  if (length_ <= 1) return;
  std::vector<Complex> work(padded_, 0);
  if (chirp_.empty()) {
    std::copy_n(values, length_, work.begin());
    power_of_two(work, roots_, inverse_);
    std::copy(work.begin(), work.end(), values);
    return;
  }
  for (size_t i = 0; i < length_; ++i) work[i] = values[i] * chirp_[i];
  power_of_two(work, roots_, false);
  for (size_t i = 0; i < padded_; ++i) work[i] *= spectrum_[i];
  power_of_two(work, roots_, true);
  const double scale = 1 / static_cast<double>(padded_);
  for (size_t i = 0; i < length_; ++i) values[i] = work[i] * scale * chirp_[i];
}

}  // namespace dais
