#pragma once

#include <optional>
#include <vector>

#include "base/file.h"
#include "data/options.h"
#include "ir/tensor.h"

namespace dais::data {

/// One channel of sound; several channels are averaged.
struct Sound {
  int64_t rate = 0;
  std::vector<float> samples;  ///< in ±1
};

struct SoundHeader {
  int64_t rate = 0, frames = 0, channels = 0;
};

/// Nothing for a file that the decoder does not know.
std::optional<SoundHeader> read_sound_header(Bytes file);
/// WAV, FLAC and Ogg. Throws `invalid_argument` with the reason, also beyond `max_seconds`.
Sound decode_sound(Bytes file, double max_seconds);
/// By a windowed sinc of six zero crossings: the filter of torchaudio's default resampling.
Sound resample(const Sound& sound, int64_t rate);

/// Frames of features of one sample rate.
///   spectrogram: |STFT|^2, a periodic Hann window, fft / 2 + 1 bins.
///   mel: the spectrogram times triangles that are evenly spaced on the HTK scale,
///     mel(f) = 2595 log10(1 + f / 700), with peaks of 1.
///   mfcc: orthonormal DCT-II of 10 log10(mel), limited to 80 dB below its maximum (Davis and
///     Mermelstein 1980).
/// The definitions are those of torchaudio's Spectrogram, MelSpectrogram and MFCC.
class FeatureExtractor {
 public:
  /// Throws `invalid_argument` when the options make no sense at this rate.
  FeatureExtractor(const AudioOptions& options, int64_t rate);

  int64_t size() const;  ///< features of a frame
  int64_t frames(int64_t samples) const;
  double seconds_per_frame() const {
    return static_cast<double>(hop_) / static_cast<double>(rate_);
  }
  /// f32 [frames, size].
  Tensor extract(const Sound& sound) const;

 private:
  std::vector<float> padded(const std::vector<float>& samples) const;
  void powers(const std::vector<float>& signal, int64_t frames, std::vector<double>& out) const;
  void to_mels(const std::vector<double>& power, int64_t frames, std::vector<double>& out) const;
  void to_coefficients(const std::vector<double>& mels, int64_t frames,
                       std::vector<double>& out) const;
  void make_filters();

  AudioOptions options_;
  int64_t rate_, window_, hop_, fft_;
  std::vector<double> taper_;    ///< the window, in the middle of `fft_` points
  std::vector<double> filters_;  ///< [mels, bins]
  std::vector<double> cosines_;  ///< [coefficients, mels]
};

}  // namespace dais::data
