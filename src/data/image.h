#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/options.h"
#include "ir/tensor.h"

namespace dais::data {

/// Pixels of 8 bits a channel, rows from the top, channels side by side: 1 gray, 3 RGB, 4 RGBA.
struct Image {
  int64_t height = 0, width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;

  /// Allocates zeros. Throws `invalid_argument` beyond the limit of pixels, before taking memory.
  void allocate(int64_t new_height, int64_t new_width, int new_channels, int64_t max_pixels);
  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }
};

/// What the first bytes of a file say. `channels` counts transparency: 1, 3 or 4.
struct ImageHeader {
  int64_t height = 0, width = 0;
  int channels = 0;
};

/// JPEG, PNG, WebP, BMP and PNM, told by their first bytes.
bool is_image(Bytes file);
/// Nothing for a file of another kind or a broken header. BMP and PNM are decoded whole for it.
std::optional<ImageHeader> read_image_header(Bytes file);

/// Decodes to 1 or 3 channels, or 4 with transparency kept. Transparent pixels are laid over the
/// gray level `background` otherwise. A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size as long
/// as that covers twice `cover_height` x `cover_width` (0: never). Throws `invalid_argument` with
/// the decoder's reason; truncated files are refused.
struct Decoding {
  int channels = 3;
  int64_t cover_height = 0, cover_width = 0;
  uint8_t background = 255;
  int64_t max_pixels = int64_t{1} << 27;
};
Image decode_image(Bytes file, const Decoding& decoding);

/// The class numbers of a mask: indices of a palette, or gray values.
Image decode_mask(Bytes file, int64_t max_pixels);

std::string encode_png(const Image& image);
std::string encode_jpeg(const Image& image, int quality);

/// Bilinear with antialiasing (the filter widens when it shrinks), in the fixed-point arithmetic of
/// the Pillow library: equal to its Image.resize(…, BILINEAR) in every bit.
Image resize_image(const Image& image, int64_t height, int64_t width);
/// Nearest pixel, for masks.
Image resize_nearest(const Image& image, int64_t height, int64_t width);

/// Where the pixels of an image went: x' = x * scale_x + shift_x.
struct Placement {
  double scale_x = 1, scale_y = 1, shift_x = 0, shift_y = 0;
};
Placement placement(int64_t height, int64_t width, const ImageOptions& options);
/// The image at the size of the options, by their mode. Without a size it stays as it is.
Image fit_image(Image image, const ImageOptions& options);
Image fit_mask(Image mask, const ImageOptions& options, uint8_t outside);

/// File to sample input: decoded, fitted, u8 [H, W, C].
Tensor load_image(Bytes file, const ImageOptions& options);
/// The same for pixels that are decoded already.
Tensor finish_image(Image image, const ImageOptions& options);
Tensor image_tensor(Image image);
/// From any number of channels to 1, 3 or 4.
Image convert_channels(Image image, int channels, uint8_t background);

// One decoder each; the reason of a refusal is thrown as `invalid_argument`.
Image decode_jpeg_file(Bytes file, const Decoding& decoding);
Image decode_png_file(Bytes file, const Decoding& decoding, bool indices);
Image decode_webp_file(Bytes file, const Decoding& decoding);
std::optional<ImageHeader> jpeg_header(Bytes file);
std::optional<ImageHeader> png_header(Bytes file);
std::optional<ImageHeader> webp_header(Bytes file);
bool is_jpeg(Bytes file);
bool is_png(Bytes file);
bool is_webp(Bytes file);

[[noreturn]] void refuse_image(const std::string& reason);

}  // namespace dais::data
