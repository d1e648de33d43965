#include "data/audio.h"

#include <algorithm>

#include "data/testing/files.h"

namespace dais::data {
namespace {

Sound chirp() { return decode_sound(golden_file("chirp.wav").bytes, 10); }

AudioOptions plain(AudioFeature feature) {
  AudioOptions options;
  options.feature = feature;
  options.log = options.normalise = false;
  return options;
}

/// The largest difference relative to the largest element.
double distance(const Tensor& mine, const Tensor& wanted) {
  EXPECT_EQ(mine.shape().text(), wanted.shape().text());
  double most = 0, scale = 0;
  for (int64_t i = 0; i < std::min(mine.elements(), wanted.elements()); ++i) {
    most = std::max(most, std::abs(mine.to_double(i) - wanted.to_double(i)));
    scale = std::max(scale, std::abs(wanted.to_double(i)));
  }
  return most / scale;
}

TEST(DataAudio, SpectrogramsEqualTorchaudio) {
  const AudioOptions options = plain(AudioFeature::spectrogram);
  EXPECT_LT(distance(FeatureExtractor(options, 8000).extract(chirp()), golden("spectrogram.npy")),
            1e-6);
  AudioOptions wide = options;
  wide.fft = 256;
  wide.center = false;
  EXPECT_LT(distance(FeatureExtractor(wide, 8000).extract(chirp()), golden("spectrogram_256.npy")),
            1e-6);
}

TEST(DataAudio, MelsAndCoefficientsEqualTorchaudio) {
  AudioOptions options = plain(AudioFeature::mel);
  options.fft = 256;
  options.mels = 20;
  options.low_hz = 20;
  EXPECT_LT(distance(FeatureExtractor(options, 8000).extract(chirp()), golden("mel.npy")), 1e-6);
  options.feature = AudioFeature::mfcc;
  options.coefficients = 13;
  EXPECT_LT(distance(FeatureExtractor(options, 8000).extract(chirp()), golden("mfcc.npy")), 1e-6);
}

TEST(DataAudio, ResamplingEqualsTorchaudio) {
  for (const int64_t rate : {16000, 5000}) {
    const Sound moved = resample(chirp(), rate);
    const Tensor wanted = golden("resample_" + std::to_string(rate) + ".npy");
    const Tensor mine = Tensor::of<float>({static_cast<int64_t>(moved.samples.size())},
                                          std::span<const float>(moved.samples));
    EXPECT_LT(distance(mine, wanted), 1e-6) << rate;
  }
}

TEST(DataAudio, NormalisedFeaturesHaveMeanZeroAndDeviationOne) {
  AudioOptions options;
  options.mels = 20;  // narrower filters would hold no bin at this rate
  const FeatureExtractor extractor(options, 8000);
  const Tensor features = extractor.extract(chirp());
  ASSERT_EQ(features.shape()[1], 20);
  EXPECT_EQ(features.shape()[0], extractor.frames(1711));
  for (int64_t c = 0; c < 20; c += 3) {
    double sum = 0, squares = 0;
    for (int64_t t = 0; t < features.shape()[0]; ++t) {
      const double value = features.to_double(t * 20 + c);
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum, 0, 1e-4);
    EXPECT_NEAR(squares / static_cast<double>(features.shape()[0]), 1, 1e-4);
  }
}

TEST(DataAudio, ShortSoundsAndSilenceHaveFrames) {
  const FeatureExtractor extractor(AudioOptions{}, 8000);
  for (const size_t count : {0, 1, 50, 101, 400}) {
    const Tensor features = extractor.extract({8000, std::vector<float>(count, 0.0F)});
    EXPECT_EQ(features.shape()[0], extractor.frames(static_cast<int64_t>(count)));
    for (const float value : features.data<float>()) EXPECT_EQ(value, 0);
  }
}

TEST(DataAudio, HostileFilesAndOptionsAreRefused) {
  const Blob file = golden_file("chirp.wav");
  for (size_t size = 0; size < file.bytes.size(); size += 191) {
    try {
      decode_sound(file.bytes.first(size), 10);
    } catch (const Error&) {
    }
  }
  EXPECT_THROW(decode_sound(file.bytes.first(20), 10), Error);
  expect_refused([&] { decode_sound(file.bytes, 0.1); }, "longer than");
  AudioOptions options;
  options.window_ms = 1e9;
  EXPECT_THROW(FeatureExtractor(options, 8000), Error);
  options = {};
  options.high_hz = 9000;
  EXPECT_THROW(FeatureExtractor(options, 8000), Error);
  EXPECT_THROW(FeatureExtractor(AudioOptions{}, 16000).extract(chirp()), Error);
}

}  // namespace
}  // namespace dais::data
