#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/draws.h"

namespace dais::data {

/// Random changes of training samples. Zeros change nothing. Boxes and masks move with their image.
/// Order: quarter turns, flips, rotation and scale about the middle, crop; then colour; then noise.
struct Augment {
  bool flip_horizontal = false, flip_vertical = false;  ///< with probability 1/2
  bool quarter_turns = false;                           ///< 0, 90, 180 or 270 degrees
  double rotate_deg = 0;                                ///< evenly in ± this
  double scale_sd = 0;                                  ///< factor exp(normal * sd)
  int64_t pad = 0;  ///< zeros put around the image before a crop of its own size
  int64_t crop_height = 0, crop_width = 0;  ///< a random crop; evaluation takes the middle one
  double hue_sd = 0, saturation_sd = 0, value_sd = 0;  ///< in HSV; hue in turns, others as factors
  double brightness = 0, contrast = 0;                 ///< evenly in 1 ± this
  double noise_sd = 0;                      ///< of the scale 0 to 255 (images) or of the features
  double mixup = 0;                         ///< alpha of the Beta distribution
  int time_masks = 0, frequency_masks = 0;  ///< SpecAugment
  int64_t time_mask_max = 0, frequency_mask_max = 0;  ///< widest, in frames and features

  bool any() const;
};

/// (x * scale - mean) / deviation per channel, or per pixel with a mean image.
struct Normalise {
  double scale = 1.0 / 255;            ///< images only
  std::vector<float> mean, deviation;  ///< one per channel or column, after scaling; empty: 0 and 1
  Tensor mean_image;                   ///< f32 [C, H, W] after scaling; absent: none
};

/// The size that images have after augmentation.
Shape augmented_shape(const Shape& image, const Augment& augment);

/// Geometry and colour of one sample. `training` false: only the middle crop.
Sample augment_sample(Sample sample, const Description& description, const Augment& augment,
                      bool training, Draws& draws);

/// u8 [H, W, C] to normalised f32 [C, H, W] at `to`; noise is added where `draws` is given.
void write_image(const Tensor& image, const Normalise& normalise, double noise_sd, Draws* draws,
                 float* to);

}  // namespace dais::data
