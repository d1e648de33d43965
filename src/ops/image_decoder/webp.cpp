#include <webp/decode.h>

#include "ops/image_decoder/decode.h"

namespace dais {

std::optional<RgbImage> decode_webp(FileBytes file) {
  int width = 0, height = 0;
  RgbImage image;
  if (!WebPGetInfo(file.data(), file.size(), &width, &height) || !image.resize(height, width))
    return std::nullopt;
  if (!WebPDecodeRGBInto(file.data(), file.size(), image.pixels.data(), image.pixels.size(),
                         width * 3))
    return std::nullopt;
  return image;
}

}  // namespace dais
