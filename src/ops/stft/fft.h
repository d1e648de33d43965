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
  /// What run() works with, for kernels of devices: the power of two that it transforms, its roots
  /// of unity (the first half of a turn), and for other lengths the chirp and the spectrum of its
  /// conjugate, empty for powers of two.
  size_t padded() const { return padded_; }
  const std::vector<std::complex<double>>& roots() const { return roots_; }
  const std::vector<std::complex<double>>& chirp() const { return chirp_; }
  const std::vector<std::complex<double>>& spectrum() const { return spectrum_; }
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
