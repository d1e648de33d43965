#include "data/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "data/color.h"
#include "data/warp.h"

namespace dais::data {

bool Augment::geometric() const {
  return flip_horizontal || flip_vertical || quarter_turns || rotate_deg != 0 || scale_sd != 0 ||
         pad != 0 || crop_height != 0 || crop_width != 0;
}

bool Augment::colored() const {
  return hue_sd != 0 || saturation_sd != 0 || value_sd != 0 || brightness != 0 || contrast != 0;
}

bool Augment::masked() const { return time_masks != 0 || frequency_masks != 0; }

Shape augmented_shape(const Shape& image, const Augment& augment) {
  Shape shape = image;
  if (augment.crop_height > 0) shape[0] = augment.crop_height;
  if (augment.crop_width > 0) shape[1] = augment.crop_width;
  return shape;
}

namespace {

Warp draw_warp(const Shape& from, const Shape& to, const Augment& augment, Draws& draws) {
  Warp warp(from[0], from[1]);
  if (augment.quarter_turns) {
    const int64_t turns = draws.below(4);
    // A quarter turn of an oblong image would not fit its batch.
    warp.turn(from[0] == from[1] ? turns : turns & 2);
  }
  if (augment.flip_horizontal && draws.coin()) warp.flip_horizontal();
  if (augment.flip_vertical && draws.coin()) warp.flip_vertical();
  const double angle =
      augment.rotate_deg == 0 ? 0 : draws.uniform(-augment.rotate_deg, augment.rotate_deg);
  const double scale = augment.scale_sd == 0 ? 1 : std::exp(draws.normal() * augment.scale_sd);
  if (angle != 0 || scale != 1) warp.rotate(angle * std::numbers::pi / 180, scale);
  const auto offset = [&](int64_t have, int64_t want) {
    const int64_t room = have + 2 * augment.pad - want;
    // A crop larger than the padded image lies about its middle.
    return room > 0 ? draws.below(room + 1) - augment.pad : room / 2 - augment.pad;
  };
  const int64_t y = offset(from[0], to[0]);
  warp.crop(y, offset(from[1], to[1]), to[0], to[1]);
  return warp;
}

Warp middle_crop(const Shape& from, const Shape& to) {
  Warp warp(from[0], from[1]);
  warp.crop((from[0] - to[0]) / 2, (from[1] - to[1]) / 2, to[0], to[1]);
  return warp;
}

void move_boxes(Sample& sample, const Warp& warp) {
  const auto boxes = sample.target.data<float>();
  const auto classes = sample.classes.data<int64_t>();
  std::vector<float> kept;
  std::vector<int64_t> kept_classes;
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto moved = warp.box(boxes.data() + i * 4);
    if (!moved) continue;
    kept.insert(kept.end(), moved->begin(), moved->end());
    kept_classes.push_back(classes[i]);
  }
  const auto count = static_cast<int64_t>(kept_classes.size());
  sample.target = Tensor::of<float>({count, 4}, std::span<const float>(kept));
  sample.classes = Tensor::of<int64_t>({count}, std::span<const int64_t>(kept_classes));
}

/// SpecAugment (Park et al., 2019) without time warping: bands and stretches of the features become
/// 0, their mean after normalisation.
Tensor mask_features(const Tensor& features, const Augment& augment, Draws& draws) {
  Tensor out = features.clone();
  const int64_t frames = out.shape()[0], bins = out.shape()[1];
  const auto values = out.data<float>();
  const auto stretch = [&](int64_t size, int64_t widest) {
    const int64_t width = std::min(size, draws.below(widest + 1));
    return std::pair(draws.below(size - width + 1), width);
  };
  for (int i = 0; i < augment.frequency_masks; ++i) {
    const auto [first, width] = stretch(bins, augment.frequency_mask_max);
    for (int64_t t = 0; t < frames; ++t)
      std::fill_n(values.begin() + t * bins + first, width, 0.0F);
  }
  for (int i = 0; i < augment.time_masks; ++i) {
    const auto [first, width] = stretch(frames, augment.time_mask_max);
    std::fill_n(values.begin() + first * bins, width * bins, 0.0F);
  }
  return out;
}

Tensor add_noise(const Tensor& values, double sd, Draws& draws) {
  Tensor out = values.clone();
  draws.add_normal(out.data<float>().data(), out.elements(), static_cast<float>(sd));
  return out;
}

}  // namespace

Sample augment_sample(Sample sample, const Description& description, const Augment& augment,
                      bool training, Draws& draws) {
  if (description.input != InputKind::image) {
    if (!training || sample.input.dtype() != DType::f32) return sample;
    if (augment.noise_sd != 0) sample.input = add_noise(sample.input, augment.noise_sd, draws);
    if (augment.masked() && description.input == InputKind::features)
      sample.input = mask_features(sample.input, augment, draws);
    return sample;
  }
  const Shape from = sample.input.shape(), to = augmented_shape(from, augment);
  if (training ? augment.geometric() : !(from == to)) {
    const Warp warp = training ? draw_warp(from, to, augment, draws) : middle_crop(from, to);
    sample.input = warp.image(sample.input, 0);
    if (description.task == Task::segmentation)
      sample.target = warp.mask(sample.target, kIgnoredPixel);
    if (description.task == Task::detection) move_boxes(sample, warp);
  }
  if (training && augment.colored()) sample.input = shift_colors(sample.input, augment, draws);
  return sample;
}

ImageWriter::ImageWriter(const Normalise& normalise, const Shape& image) {
  const auto channels = static_cast<size_t>(image.back());
  const auto check = [&](size_t count, const char* what) {
    if (count != 0 && count != channels)
      throw Error(Code::invalid_argument,
                  std::string(what) + " of " + std::to_string(count) + " channels for images of " +
                      std::to_string(channels),
                  "normalise", "Give one value for each channel, or none");
  };
  check(normalise.mean.size(), "a mean");
  check(normalise.deviation.size(), "a deviation");
  const bool pixelwise = static_cast<bool>(normalise.mean_image);
  if (pixelwise && !(normalise.mean_image.shape() == Shape{image.back(), image[0], image[1]}))
    throw Error(Code::invalid_argument,
                "a mean image " + normalise.mean_image.describe() + " for images " + image.text(),
                "normalise", "Make it from the same dataset at the same size");
  levels_.resize(channels * 256);
  if (pixelwise) mean_image_ = normalise.mean_image.clone();
  for (size_t c = 0; c < channels; ++c) {
    const double mean = pixelwise || normalise.mean.empty() ? 0 : normalise.mean[c];
    const double deviation = normalise.deviation.empty() ? 1 : normalise.deviation[c];
    for (size_t level = 0; level < 256; ++level)
      levels_[c * 256 + level] =
          static_cast<float>((static_cast<double>(level) * normalise.scale - mean) / deviation);
    steps_.push_back(static_cast<float>(normalise.scale / deviation));
    if (!pixelwise) continue;
    const auto plane = static_cast<size_t>(image[0] * image[1]);
    for (float& value : mean_image_.data<float>().subspan(c * plane, plane))
      value = static_cast<float>(value / deviation);
  }
}

void ImageWriter::write(const Tensor& image, float* to) const {
  const int64_t pixels = image.shape()[0] * image.shape()[1], channels = image.shape()[2];
  const auto* from = image.storage<uint8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    const float* levels = levels_.data() + c * 256;
    float* plane = to + c * pixels;
    for (int64_t i = 0; i < pixels; ++i) plane[i] = levels[from[i * channels + c]];
  }
  if (!mean_image_) return;
  const auto* mean = mean_image_.storage<float>();
  for (int64_t i = 0; i < pixels * channels; ++i) to[i] -= mean[i];
}

void ImageWriter::write_noisy(const Tensor& image, double sd, Draws& draws, float* to) const {
  write(image, to);
  const int64_t pixels = image.shape()[0] * image.shape()[1];
  for (size_t c = 0; c < steps_.size(); ++c, to += pixels)
    draws.add_normal(to, pixels, static_cast<float>(sd) * steps_[c]);
}

}  // namespace dais::data
