#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/draws.h"

namespace dais::data {

/// The class of pixels that do not count, in masks.
inline constexpr uint8_t kIgnoredPixel = 255;

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

  bool geometric() const;
  bool colored() const;
  bool masked() const;
};

/// (x * scale - mean) / deviation per channel, or per pixel with a mean image.
struct Normalise {
  double scale = 1.0 / 255;            ///< images only
  std::vector<float> mean, deviation;  ///< one per channel or column, after scaling; empty: 0 and 1
  Tensor mean_image;                   ///< f32 [C, H, W] after scaling, instead of `mean`
};

/// The size that images have after augmentation.
Shape augmented_shape(const Shape& image, const Augment& augment);

/// Geometry and colour of one sample. `training` false: only the middle crop.
Sample augment_sample(Sample sample, const Description& description, const Augment& augment,
                      bool training, Draws& draws);

/// Writes u8 [H, W, C] as normalised f32 [C, H, W]. Made once, used by many threads.
class ImageWriter {
 public:
  ImageWriter() = default;
  /// Throws `invalid_argument` when the statistics do not have the image's channels.
  ImageWriter(const Normalise& normalise, const Shape& image);

  void write(const Tensor& image, float* to) const;
  /// With noise of deviation `sd` on the scale of the bytes.
  void write_noisy(const Tensor& image, double sd, Draws& draws, float* to) const;

 private:
  std::vector<float> levels_;  ///< 256 values for each channel
  std::vector<float> steps_;   ///< what one byte level is worth, for each channel
  Tensor mean_image_;          ///< already divided by the deviation
};

}  // namespace dais::data
