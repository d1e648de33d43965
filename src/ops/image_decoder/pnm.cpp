#include <algorithm>

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

bool is_space(uint8_t byte) { return byte == ' ' || (byte >= 9 && byte <= 13); }

/// Numbers in text, with comments from # to the end of a line.
class PnmReader {
 public:
  explicit PnmReader(FileBytes file) : file_(file), at_(2) {}

  /// -1 where there is no number.
  int64_t number() {
    skip_space();
    int64_t value = -1;
    while (at_ < file_.size() && file_[at_] >= '0' && file_[at_] <= '9') {
      value = std::max<int64_t>(value, 0) * 10 + file_[at_++] - '0';
      if (value > INT32_MAX) return -1;
    }
    return value;
  }
  /// One digit of a bitmap in text: digits may stand without spaces.
  int64_t bit() {
    skip_space();
    if (at_ >= file_.size() || (file_[at_] != '0' && file_[at_] != '1')) return -1;
    return file_[at_++] - '0';
  }
  /// What follows the single space behind the header.
  FileBytes rest() const { return file_.subspan(std::min(at_ + 1, file_.size())); }

 private:
  void skip_space() {
    while (at_ < file_.size() && (is_space(file_[at_]) || file_[at_] == '#')) {
      if (file_[at_] == '#')
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }

  FileBytes file_;
  size_t at_;
};

uint8_t to_byte(int64_t value, int64_t top) {
  return static_cast<uint8_t>((std::min(value, top) * 255 + top / 2) / top);
}

/// Sets one channel of a pixel, or all three of a gray one.
void put(uint8_t* pixel, int64_t channel, int64_t channels, uint8_t byte) {
  if (channels == 1)
    std::fill_n(pixel, 3, byte);
  else
    pixel[channel] = byte;
}

bool read_text(PnmReader& reader, bool bits, int64_t top, int64_t channels, RgbImage& image) {
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    for (int64_t k = 0; k < channels; ++k) {
      const int64_t value = bits ? reader.bit() : reader.number();
      if (value < 0) return false;
      const uint8_t byte = bits ? static_cast<uint8_t>(value ? 0 : 255) : to_byte(value, top);
      put(image.pixels.data() + i, k, channels, byte);
    }
  return true;
}

bool read_bits(FileBytes from, RgbImage& image) {
  const int64_t line = (image.width + 7) / 8;
  if (static_cast<int64_t>(from.size()) < line * image.height) return false;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t byte = from[static_cast<size_t>(y * line + x / 8)];
      const bool black = (byte >> (7 - x % 8)) & 1;
      std::fill_n(image.row(y) + x * 3, 3, static_cast<uint8_t>(black ? 0 : 255));
    }
  return true;
}

bool read_binary(FileBytes from, int64_t top, int64_t channels, RgbImage& image) {
  const int64_t wide = top > 255 ? 2 : 1;
  if (static_cast<int64_t>(from.size()) < image.height * image.width * channels * wide)
    return false;
  const uint8_t* byte = from.data();
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    for (int64_t k = 0; k < channels; ++k, byte += wide)
      put(image.pixels.data() + i, k, channels,
          to_byte(wide == 2 ? byte[0] * 256 + byte[1] : byte[0], top));
  return true;
}

}  // namespace

std::optional<RgbImage> decode_pnm(FileBytes file) {
  const int kind = file[1] - '0';  // 1 to 3 in text, 4 to 6 binary
  PnmReader reader(file);
  const int64_t width = reader.number(), height = reader.number();
  const bool bits = kind == 1 || kind == 4;
  const int64_t top = bits ? 1 : reader.number();
  const int64_t channels = kind == 3 || kind == 6 ? 3 : 1;
  if (top < 1 || top > 65535) return std::nullopt;
  // A pixel takes at least one bit: refuses sizes that the file cannot hold.
  RgbImage image;
  if (width < 1 || height < 1 || width * height > static_cast<int64_t>(file.size()) * 8 ||
      !image.resize(height, width))
    return std::nullopt;
  const bool done = kind <= 3   ? read_text(reader, bits, top, channels, image)
                    : kind == 4 ? read_bits(reader.rest(), image)
                                : read_binary(reader.rest(), top, channels, image);
  return done ? std::optional(std::move(image)) : std::nullopt;
}

}  // namespace dais
