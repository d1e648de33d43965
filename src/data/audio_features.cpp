#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "data/audio.h"
#include "ops/stft/fft.h"

namespace dais::data {
namespace {

constexpr double kSmallest = 1e-10;  ///< powers below are taken as this

int64_t samples_of(double ms, int64_t rate) {
  return std::llround(ms * static_cast<double>(rate) / 1000);
}

double mel_of(double hz) { return 2595 * std::log10(1 + hz / 700); }
double hz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// Each column to mean 0 and deviation 1.
void normalise_columns(std::vector<double>& values, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < rows; ++r) sum += values[static_cast<size_t>(r * columns + c)];
    const double mean = rows > 0 ? sum / static_cast<double>(rows) : 0;
    for (int64_t r = 0; r < rows; ++r) {
      double& value = values[static_cast<size_t>(r * columns + c)];
      value -= mean;
      squares += value * value;
    }
    // A column without any change (silence) stays 0.
    const double deviation = rows > 0 ? std::sqrt(squares / static_cast<double>(rows)) : 0;
    if (deviation < 1e-8) continue;
    for (int64_t r = 0; r < rows; ++r) values[static_cast<size_t>(r * columns + c)] /= deviation;
  }
}

}  // namespace

FeatureExtractor::FeatureExtractor(const AudioOptions& options, int64_t rate)
    : options_(options),
      rate_(rate),
      window_(samples_of(options.window_ms, rate)),
      hop_(samples_of(options.hop_ms, rate)),
      fft_(options.fft > 0 ? options.fft : window_) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw Error(Code::invalid_argument, what, "sound of " + std::to_string(rate) + " Hz", remedy);
  };
  constexpr int64_t kLongest = 1 << 20;
  if (window_ < 2 || window_ > kLongest || hop_ < 1 || hop_ > kLongest || fft_ > kLongest)
    refuse("windows of " + std::to_string(window_) + " samples every " + std::to_string(hop_),
           "Use windows and hops of some milliseconds");
  if (fft_ < window_)
    refuse("a transform of " + std::to_string(fft_) + " points for windows of " +
               std::to_string(window_),
           "Use at least as many points");
  if (options_.high_hz <= 0) options_.high_hz = static_cast<double>(rate) / 2;
  const bool mels = options_.feature != AudioFeature::spectrogram;
  if (mels &&
      (options_.mels < 1 || options_.mels > fft_ || options_.low_hz < 0 ||
       options_.low_hz >= options_.high_hz || options_.high_hz > static_cast<double>(rate) / 2))
    refuse(std::to_string(options_.mels) + " mel filters from " + std::to_string(options_.low_hz) +
               " to " + std::to_string(options_.high_hz) + " Hz",
           "Keep them below half the sample rate");
  if (options_.feature == AudioFeature::mfcc &&
      (options_.coefficients < 1 || options_.coefficients > options_.mels))
    refuse(std::to_string(options_.coefficients) + " coefficients of " +
               std::to_string(options_.mels) + " filters",
           "Use at most as many as filters");
  taper_.assign(static_cast<size_t>(fft_), 0);
  for (int64_t i = 0; i < window_; ++i)
    taper_[static_cast<size_t>((fft_ - window_) / 2 + i)] =
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                             static_cast<double>(window_));
  if (mels) make_filters();
}

void FeatureExtractor::make_filters() {
  const int64_t bins = fft_ / 2 + 1;
  const auto mels = static_cast<size_t>(options_.mels);
  std::vector<double> points(mels + 2);
  const double low = mel_of(options_.low_hz), high = mel_of(options_.high_hz);
  for (size_t i = 0; i < points.size(); ++i)
    points[i] = hz_of(low + (high - low) * static_cast<double>(i) / static_cast<double>(mels + 1));
  filters_.assign(mels * static_cast<size_t>(bins), 0);
  for (size_t m = 0; m < mels; ++m)
    for (int64_t k = 0; k < bins; ++k) {
      // Bins from 0 to half the rate, also for an odd number of points.
      const double hz = static_cast<double>(rate_) / 2 * static_cast<double>(k) /
                        static_cast<double>(std::max<int64_t>(1, bins - 1));
      const double rise = (hz - points[m]) / (points[m + 1] - points[m]);
      const double fall = (points[m + 2] - hz) / (points[m + 2] - points[m + 1]);
      filters_[m * static_cast<size_t>(bins) + static_cast<size_t>(k)] =
          std::max(0.0, std::min(rise, fall));
    }
  if (options_.feature != AudioFeature::mfcc) return;
  for (int64_t c = 0; c < options_.coefficients; ++c)
    for (int64_t m = 0; m < options_.mels; ++m)
      cosines_.push_back(std::cos(std::numbers::pi / static_cast<double>(options_.mels) *
                                  (static_cast<double>(m) + 0.5) * static_cast<double>(c)) *
                         std::sqrt((c == 0 ? 1.0 : 2.0) / static_cast<double>(options_.mels)));
}

int64_t FeatureExtractor::size() const {
  switch (options_.feature) {
    case AudioFeature::spectrogram: return fft_ / 2 + 1;
    case AudioFeature::mel: return options_.mels;
    case AudioFeature::mfcc: return options_.coefficients;
  }
  return 0;
}

int64_t FeatureExtractor::frames(int64_t samples) const {
  if (options_.center) samples += fft_ / 2 * 2;
  return samples < fft_ ? 1 : 1 + (samples - fft_) / hop_;
}

std::vector<float> FeatureExtractor::padded(const std::vector<float>& samples) const {
  const auto count = static_cast<int64_t>(samples.size());
  const int64_t side = options_.center ? fft_ / 2 : 0;
  std::vector<float> out(static_cast<size_t>(std::max(count + 2 * side, fft_)), 0.0F);
  std::copy(samples.begin(), samples.end(), out.begin() + side);
  // Reflected about the first and the last sample; zeros where the sound is too short for that.
  for (int64_t i = 1; i <= side; ++i) {
    if (i >= count) break;
    out[static_cast<size_t>(side - i)] = samples[static_cast<size_t>(i)];
    out[static_cast<size_t>(side + count - 1 + i)] = samples[static_cast<size_t>(count - 1 - i)];
  }
  return out;
}

void FeatureExtractor::powers(const std::vector<float>& signal, int64_t frames,
                              std::vector<double>& out) const {
  const auto points = static_cast<size_t>(fft_), bins = points / 2 + 1;
  const Fft transform(points, false);
  std::vector<std::complex<double>> values(points);
  out.assign(static_cast<size_t>(frames) * bins, 0);
  // Two real frames share a complex transform: Z[k] = A[k] + i B[k], both symmetric.
  for (int64_t frame = 0; frame < frames; frame += 2) {
    const bool two = frame + 1 < frames;
    const float* first = signal.data() + frame * hop_;
    for (size_t i = 0; i < points; ++i)
      values[i] = {first[i] * taper_[i],
                   two ? first[i + static_cast<size_t>(hop_)] * taper_[i] : 0.0};
    transform.run(values.data());
    double* to = out.data() + static_cast<size_t>(frame) * bins;
    for (size_t k = 0; k < bins; ++k) {
      const auto z = values[k], mirrored = std::conj(values[k == 0 ? 0 : points - k]);
      to[k] = std::norm(0.5 * (z + mirrored));
      if (two) to[bins + k] = std::norm(0.5 * (z - mirrored));
    }
  }
}

void FeatureExtractor::to_mels(const std::vector<double>& power, int64_t frames,
                               std::vector<double>& out) const {
  const int64_t bins = fft_ / 2 + 1, mels = options_.mels;
  out.assign(static_cast<size_t>(frames * mels), 0);
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t m = 0; m < mels; ++m) {
      double sum = 0;
      for (int64_t k = 0; k < bins; ++k)
        sum +=
            power[static_cast<size_t>(t * bins + k)] * filters_[static_cast<size_t>(m * bins + k)];
      out[static_cast<size_t>(t * mels + m)] = sum;
    }
}

void FeatureExtractor::to_coefficients(const std::vector<double>& mels, int64_t frames,
                                       std::vector<double>& out) const {
  constexpr double kRange = 80;
  const int64_t count = options_.mels, coefficients = options_.coefficients;
  std::vector<double> decibels(mels.size());
  double loudest = -1e300;
  for (size_t i = 0; i < mels.size(); ++i) {
    decibels[i] = 10 * std::log10(std::max(mels[i], kSmallest));
    loudest = std::max(loudest, decibels[i]);
  }
  for (double& value : decibels) value = std::max(value, loudest - kRange);
  out.assign(static_cast<size_t>(frames * coefficients), 0);
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t c = 0; c < coefficients; ++c) {
      double sum = 0;
      for (int64_t m = 0; m < count; ++m)
        sum += decibels[static_cast<size_t>(t * count + m)] *
               cosines_[static_cast<size_t>(c * count + m)];
      out[static_cast<size_t>(t * coefficients + c)] = sum;
    }
}

Tensor FeatureExtractor::extract(const Sound& sound) const {
  if (sound.rate != rate_)
    throw Error(Code::invalid_argument,
                "sound of " + std::to_string(sound.rate) + " Hz among sound of " +
                    std::to_string(rate_) + " Hz",
                {}, "Name one rate with --sample-rate");
  const auto count = frames(static_cast<int64_t>(sound.samples.size()));
  std::vector<double> values, rest;
  powers(padded(sound.samples), count, values);
  if (options_.feature != AudioFeature::spectrogram) {
    to_mels(values, count, rest);
    values.swap(rest);
  }
  if (options_.feature == AudioFeature::mfcc) {
    to_coefficients(values, count, rest);
    values.swap(rest);
  } else if (options_.log) {
    for (double& value : values) value = std::log(std::max(value, kSmallest));
  }
  if (options_.normalise) normalise_columns(values, count, size());
  Tensor out(DType::f32, {count, size()});
  std::transform(values.begin(), values.end(), out.storage<float>(),
                 [](double value) { return static_cast<float>(value); });
  return out;
}

}  // namespace dais::data
