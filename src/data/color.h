#pragma once

#include "data/augment.h"

namespace dais::data {

/// Hue, saturation, value, brightness and contrast of u8 [H, W, 1 or 3], drawn anew. Gray images
/// have no hue and no saturation.
Tensor shift_colors(const Tensor& image, const Augment& augment, Draws& draws);

}  // namespace dais::data
