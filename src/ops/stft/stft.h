#pragma once

#include "ir/op.h"

namespace dais {

/// (signal, length?, axis?): discrete Fourier transform along an axis (-2 by default). The last
/// axis holds real parts (size 1) or real and imaginary parts (size 2). The signal is cut or filled
/// with zeros to `length`. onesided keeps the first length / 2 + 1 bins; together with inverse it
/// takes that many and gives real numbers.
struct Dft {
  bool inverse = false;
  bool onesided = false;
  static constexpr auto fields =
      std::tuple{field("inverse", &Dft::inverse), field("onesided", &Dft::onesided)};
  static const Op op;
};

/// (signal [batch, samples, 1 or 2], step, window?, frame length?): transforms of overlapping
/// frames: [batch, frames, bins, 2].
struct Stft {
  bool onesided = true;
  static constexpr auto fields = std::tuple{field("onesided", &Stft::onesided)};
  static const Op op;
};

}  // namespace dais
