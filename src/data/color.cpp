#include "data/color.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dais::data {
namespace {

uint8_t to_byte(float value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
}

/// One pixel through HSV: hue in sixths of a turn, value on the scale of the bytes.
void shift_pixel(uint8_t* rgb, float hue_shift, float saturation_factor, float value_factor) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  float value = std::max({r, g, b});
  const float chroma = value - std::min({r, g, b});
  float hue = 0;
  if (chroma > 0) {
    if (value == r)
      hue = (g - b) / chroma;
    else if (value == g)
      hue = 2 + (b - r) / chroma;
    else
      hue = 4 + (r - g) / chroma;
  }
  float saturation = value > 0 ? chroma / value : 0;
  hue += hue_shift;
  saturation = std::clamp(saturation * saturation_factor, 0.0F, 1.0F);
  value = std::clamp(value * value_factor, 0.0F, 255.0F);
  // Each channel falls from the value by up to the chroma, with its distance from its own hue.
  for (int k = 0; k < 3; ++k) {
    float place = std::fmod(static_cast<float>(5 - 2 * k) + hue, 6.0F);
    if (place < 0) place += 6;
    const float fall = std::clamp(std::min(place, 4 - place), 0.0F, 1.0F);
    rgb[k] = to_byte(value * (1 - saturation * fall));
  }
}

float mean_of(const Tensor& image) {
  double sum = 0;
  for (const uint8_t byte : image.data<uint8_t>()) sum += byte;
  return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, image.elements())));
}

}  // namespace

Tensor shift_colors(const Tensor& image, const Augment& augment, Draws& draws) {
  Tensor out = image.clone();
  const auto bytes = out.data<uint8_t>();
  const auto hue = static_cast<float>(6 * augment.hue_sd * draws.normal());
  const auto saturation =
      static_cast<float>(std::max(0.0, 1 + augment.saturation_sd * draws.normal()));
  const auto value = static_cast<float>(std::max(0.0, 1 + augment.value_sd * draws.normal()));
  if (augment.hue_sd != 0 || augment.saturation_sd != 0 || augment.value_sd != 0) {
    if (image.shape()[2] == 3)
      for (size_t i = 0; i < bytes.size(); i += 3) shift_pixel(&bytes[i], hue, saturation, value);
    else
      for (uint8_t& byte : bytes) byte = to_byte(static_cast<float>(byte) * value);
  }
  if (augment.brightness == 0 && augment.contrast == 0) return out;
  const auto bright =
      static_cast<float>(draws.uniform(1 - augment.brightness, 1 + augment.brightness));
  const auto contrast =
      static_cast<float>(draws.uniform(1 - augment.contrast, 1 + augment.contrast));
  const float mean = mean_of(out) * bright;
  std::array<uint8_t, 256> table;
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = to_byte((static_cast<float>(i) * bright - mean) * contrast + mean);
  for (uint8_t& byte : bytes) byte = table[byte];
  return out;
}

}  // namespace dais::data
