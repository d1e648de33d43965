#pragma once

#include "nn/flags.h"

/// What several networks are made of.
namespace dais::nn {

/// The largest image (longer side) that gets a stem without early halving.
inline constexpr int64_t kSmallImage = 64;
bool is_small(const InputSize& input);

/// "image" of that size, or "features" for one number.
Value image_input(Network& net, const InputSize& input);

/// Convolution without bias, then batch norm. The norm's name is given apart, as files of other
/// programs name the two beside or below one another.
struct ConvNorm {
  ConvOptions conv = {};
  NormOptions norm = {};
};
Value conv_norm(Value x, int64_t channels, ConvNorm options);

/// Marks what the outputs mean, for training: "classification", "segmentation", "detection",
/// "next_token", "transcription".
Network finish(Network net, const char* task, Value logits);

/// The multiple of 8 nearest to channels * scale, and not below nine tenths of it.
int64_t scaled_channels(int64_t channels, double scale);

/// channels * scale to the nearest whole number, at least 1.
int64_t channels_by(int64_t channels, double scale);

/// "base.0", "base.1", ...: names of layers that stand in a row.
inline std::string numbered(const std::string& base, size_t number) {
  return base + "." + std::to_string(number);
}

}  // namespace dais::nn
