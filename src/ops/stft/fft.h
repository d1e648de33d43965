#pragma once

#include <complex>
#include <vector>

namespace dais {

/// Fourier transforms of one length, any length: powers of two by halving, others as a convolution
/// with a chirp. Forward, or inverse without the division by the length.
class Fft {
 public:
  Fft(size_t length, bool inverse);
  size_t length() const { return length_; }
  /// In place; `values` has `length` entries.
  void run(std::complex<double>* values) const;

 private:
  using Complex = std::complex<double>;
  static void power_of_two(std::vector<Complex>& values, const std::vector<Complex>& roots,
                           bool conjugate);

  size_t length_, padded_;
  bool inverse_;
  std::vector<Complex> roots_;     ///< of the padded length
  std::vector<Complex> chirp_;     ///< empty for powers of two
  std::vector<Complex> spectrum_;  ///< transform of the conjugate chirp
};

}  // namespace dais
