#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dais {

/// Pixels of 8 bits a channel, rows from the top, red, green and blue side by side.
struct RgbImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  /// False when the size is not one that a sane file has; nothing is allocated then.
  bool resize(int64_t new_height, int64_t new_width);
  uint8_t* row(int64_t y) { return pixels.data() + y * width * 3; }
};

using FileBytes = std::span<const uint8_t>;

/// Decodes a file of any known format; nullopt when it is none or broken. Transparency is dropped.
std::optional<RgbImage> decode_image(FileBytes file);

std::optional<RgbImage> decode_bmp(FileBytes file);
std::optional<RgbImage> decode_jpeg(FileBytes file);
std::optional<RgbImage> decode_jpeg2000(FileBytes file);
std::optional<RgbImage> decode_png(FileBytes file);
std::optional<RgbImage> decode_pnm(FileBytes file);
std::optional<RgbImage> decode_tiff(FileBytes file);
std::optional<RgbImage> decode_webp(FileBytes file);

}  // namespace dais
