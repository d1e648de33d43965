#pragma once

#include "ir/op.h"

namespace dais {

/// (bytes of a file): the image as u8 [height, width, 3] in the order RGB or BGR, or [height,
/// width, 1] for Grayscale. Formats: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP. What cannot be
/// decoded gives an image of no pixels.
struct ImageDecoder {
  std::string pixel_format = "RGB";
  static constexpr auto fields = std::tuple{field("pixel_format", &ImageDecoder::pixel_format)};
  static const Op op;
};

}  // namespace dais
