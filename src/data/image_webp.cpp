#include <webp/decode.h>

#include <cstring>

#include "data/image.h"

namespace dais::data {

bool is_webp(Bytes file) {
  return file.size() > 12 && std::memcmp(file.data(), "RIFF", 4) == 0 &&
         std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

std::optional<ImageHeader> webp_header(Bytes file) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK) return std::nullopt;
  return ImageHeader{features.height, features.width, features.has_alpha ? 4 : 3};
}

Image decode_webp_file(Bytes file, const Decoding& decoding) {
  const auto header = webp_header(file);
  if (!header) refuse_image("its header is broken");
  Image image;
  image.allocate(header->height, header->width, header->channels, decoding.max_pixels);
  const auto stride = static_cast<int>(image.width * image.channels);
  const auto decode = image.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (!decode(file.data(), file.size(), image.pixels.data(), image.pixels.size(), stride))
    refuse_image("it is broken or ends early");
  return image;
}

}  // namespace dais::data
