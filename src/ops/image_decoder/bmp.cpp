#include <algorithm>
#include <bit>
#include <cstdlib>

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

enum Compression : uint32_t { plain = 0, rle8 = 1, rle4 = 2, masks = 3, masks_alpha = 6 };

struct BmpHeader {
  int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  uint32_t compression = plain;
  uint32_t mask[3] = {0xff0000, 0xff00, 0xff};
  size_t palette_at = 0, palette_count = 0, palette_entry = 4;
  size_t pixels_at = 0;

  bool runs() const { return compression == rle8 || compression == rle4; }
  int64_t row(int64_t y) const { return top_down ? y : height - 1 - y; }
};

uint32_t little(FileBytes file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes && at + i < file.size(); ++i)
    value |= static_cast<uint32_t>(file[at + i]) << (8 * i);
  return value;
}

void read_masks(FileBytes file, size_t header_size, BmpHeader& out) {
  if (out.compression == masks || out.compression == masks_alpha) {
    for (size_t k = 0; k < 3; ++k) out.mask[k] = little(file, 54 + 4 * k, 4);
    if (header_size == 40) out.palette_at += out.compression == masks ? 12 : 16;
  } else if (out.bits == 16) {
    out.mask[0] = 0x7c00;
    out.mask[1] = 0x3e0;
    out.mask[2] = 0x1f;
  }
}

bool read_header(FileBytes file, BmpHeader& out) {
  if (file.size() < 26) return false;
  out.pixels_at = little(file, 10, 4);
  const size_t size = little(file, 14, 4);
  if (size == 12) {
    out.width = little(file, 18, 2);
    out.height = little(file, 20, 2);
    out.bits = static_cast<int>(little(file, 24, 2));
    out.palette_entry = 3;
  } else {
    if (size < 40 || size > 1024 || file.size() < 14 + size) return false;
    out.width = static_cast<int32_t>(little(file, 18, 4));
    out.height = static_cast<int32_t>(little(file, 22, 4));
    out.top_down = out.height < 0;
    out.height = std::abs(out.height);
    out.bits = static_cast<int>(little(file, 28, 2));
    out.compression = little(file, 30, 4);
    out.palette_count = little(file, 46, 4);
  }
  out.palette_at = 14 + size;
  read_masks(file, size, out);
  const int bits = out.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) return false;
  if (out.runs() && bits != (out.compression == rle8 ? 8 : 4)) return false;
  if (out.palette_count == 0 && bits <= 8) out.palette_count = size_t{1} << bits;
  out.palette_count = std::min<size_t>(out.palette_count, 256);
  return out.compression <= masks || out.compression == masks_alpha;
}

void write_palette(FileBytes file, const BmpHeader& header, uint32_t index, uint8_t* pixel) {
  if (index >= header.palette_count) return;
  const size_t at = header.palette_at + index * header.palette_entry;
  for (size_t k = 0; k < 3; ++k)
    pixel[k] = at + 2 - k < file.size() ? file[at + 2 - k] : uint8_t{0};
}

/// A field of a packed pixel widened to 8 bits.
uint8_t widened(uint32_t value, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t top = mask >> shift, field = (value & mask) >> shift;
  return static_cast<uint8_t>((field * 255 + top / 2) / top);
}

bool read_plain(FileBytes file, const BmpHeader& header, RgbImage& image) {
  const int64_t line = (header.width * header.bits + 31) / 32 * 4;
  if (header.pixels_at > file.size() ||
      line * header.height > static_cast<int64_t>(file.size() - header.pixels_at))
    return false;
  const auto bits = static_cast<size_t>(header.bits);
  for (int64_t y = 0; y < header.height; ++y) {
    uint8_t* to = image.row(header.row(y));
    const size_t from = header.pixels_at + static_cast<size_t>(y * line);
    for (size_t x = 0; x < static_cast<size_t>(header.width); ++x, to += 3) {
      const size_t place = x * bits;
      if (bits <= 8) {
        const uint32_t byte = file[from + place / 8];
        write_palette(file, header, (byte >> (8 - bits - place % 8)) & ((1u << bits) - 1), to);
        continue;
      }
      const uint32_t value = little(file, from + place / 8, bits / 8);
      for (int k = 0; k < 3; ++k) to[k] = widened(value, header.mask[k]);
    }
  }
  return true;
}

/// Runs of equal pixels, and escapes: end of line, end of image, a jump, or literal pixels.
bool read_runs(FileBytes file, const BmpHeader& header, RgbImage& image) {
  const bool four = header.compression == rle4;
  int64_t x = 0, y = 0;
  auto put = [&](uint32_t index) {
    if (x < header.width && y < header.height)
      write_palette(file, header, index, image.row(header.row(y)) + x * 3);
    ++x;
  };
  auto half = [&](uint32_t byte, uint32_t i) {
    return !four ? byte : i % 2 ? byte & 15 : byte >> 4;
  };
  size_t at = header.pixels_at;
  while (at + 1 < file.size() && y < header.height) {
    const uint32_t count = file[at], code = file[at + 1];
    at += 2;
    if (count > 0) {
      for (uint32_t i = 0; i < count; ++i) put(half(code, i));
    } else if (code == 0) {
      x = 0;
      ++y;
    } else if (code == 1) {
      return true;
    } else if (code == 2) {
      x += little(file, at, 1);
      y += little(file, at + 1, 1);
      at += 2;
    } else {
      const size_t bytes = four ? (code + 1) / 2 : code;
      if (at + bytes > file.size()) return false;
      for (uint32_t i = 0; i < code; ++i) put(half(file[at + (four ? i / 2 : i)], i));
      at += (bytes + 1) / 2 * 2;
    }
  }
  return true;
}

}  // namespace

std::optional<RgbImage> decode_bmp(FileBytes file) {
  BmpHeader header;
  RgbImage image;
  if (!read_header(file, header) || !image.resize(header.height, header.width)) return std::nullopt;
  const bool done =
      header.runs() ? read_runs(file, header, image) : read_plain(file, header, image);
  return done ? std::optional(std::move(image)) : std::nullopt;
}

}  // namespace dais
