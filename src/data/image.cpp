#include "data/image.h"

#include <algorithm>
#include <cstring>

#include "ops/image_decoder/decode.h"

namespace dais::data {

void refuse_image(const std::string& reason) {
  throw Error(Code::invalid_argument, "unreadable image: " + reason);
}

void Image::allocate(int64_t new_height, int64_t new_width, int new_channels, int64_t max_pixels) {
  if (new_height < 1 || new_width < 1 || new_height > max_pixels / new_width)
    refuse_image("it has " + std::to_string(new_width) + "x" + std::to_string(new_height) +
                 " pixels");
  height = new_height;
  width = new_width;
  channels = new_channels;
  pixels.assign(static_cast<size_t>(height * width * channels), 0);
}

namespace {

bool is_bmp(Bytes file) { return file.size() > 2 && file[0] == 'B' && file[1] == 'M'; }

bool is_pnm(Bytes file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6';
}

/// BMP and PNM come as RGB from the decoders of the operator. PNM of gray levels is gray.
Image decode_plain(Bytes file, const Decoding& decoding) {
  auto decoded = is_bmp(file) ? decode_bmp(file) : decode_pnm(file);
  if (!decoded) refuse_image("it is broken or ends early");
  if (decoded->height * decoded->width > decoding.max_pixels)
    refuse_image("it has too many pixels");
  return {decoded->height, decoded->width, 3, std::move(decoded->pixels)};
}

bool is_gray_file(Bytes file) { return is_pnm(file) && file[1] != '3' && file[1] != '6'; }

/// Luma of ITU-R BT.601 in 16-bit fixed point.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

uint8_t over(uint8_t value, uint8_t alpha, uint8_t background) {
  return static_cast<uint8_t>((value * alpha + background * (255 - alpha) + 127) / 255);
}

}  // namespace

Image convert_channels(Image image, int channels, uint8_t background) {
  if (image.channels == channels) return image;
  Image out;
  out.allocate(image.height, image.width, channels, image.height * image.width);
  const int from = image.channels;
  const uint8_t* pixel = image.pixels.data();
  const int64_t count = image.height * image.width;
  for (int64_t i = 0; i < count; ++i, pixel += from) {
    uint8_t rgba[4] = {pixel[0], pixel[0], pixel[0], 255};
    if (from >= 3) std::copy_n(pixel, from, rgba);
    if (from == 2) rgba[3] = pixel[1];
    if (channels != 4 && rgba[3] != 255)
      for (int k = 0; k < 3; ++k) rgba[k] = over(rgba[k], rgba[3], background);
    uint8_t* to = out.pixels.data() + i * channels;
    if (channels == 1)
      *to = from >= 3 ? luma(rgba) : rgba[0];
    else
      std::copy_n(rgba, channels, to);
  }
  return out;
}

bool is_image(Bytes file) {
  return is_jpeg(file) || is_png(file) || is_webp(file) || is_bmp(file) || is_pnm(file);
}

std::optional<ImageHeader> read_image_header(Bytes file) {
  if (is_jpeg(file)) return jpeg_header(file);
  if (is_png(file)) return png_header(file);
  if (is_webp(file)) return webp_header(file);
  if (!is_bmp(file) && !is_pnm(file)) return std::nullopt;
  const auto decoded = is_bmp(file) ? decode_bmp(file) : decode_pnm(file);
  if (!decoded) return std::nullopt;
  return ImageHeader{decoded->height, decoded->width, is_gray_file(file) ? 1 : 3};
}

Image decode_image(Bytes file, const Decoding& decoding) {
  Image image;
  if (is_jpeg(file))
    image = decode_jpeg_file(file, decoding);
  else if (is_png(file))
    image = decode_png_file(file, decoding, false);
  else if (is_webp(file))
    image = decode_webp_file(file, decoding);
  else if (is_bmp(file) || is_pnm(file))
    image = decode_plain(file, decoding);
  else
    refuse_image(file.empty() ? "the file is empty"
                              : "its first bytes are of no known image format");
  return convert_channels(std::move(image), decoding.channels, decoding.background);
}

Image decode_mask(Bytes file, int64_t max_pixels) {
  Decoding decoding;
  decoding.channels = 1;
  decoding.max_pixels = max_pixels;
  if (is_png(file)) return decode_png_file(file, decoding, true);
  if (is_gray_file(file) || is_bmp(file))
    return convert_channels(decode_plain(file, decoding), 1, 0);
  refuse_image("a mask must be a PNG, a BMP or a gray PNM: other formats blur class numbers");
}

Tensor image_tensor(Image image) {
  auto pixels = std::make_shared<std::vector<uint8_t>>(std::move(image.pixels));
  return Tensor::view(DType::u8, {image.height, image.width, image.channels}, pixels->data(),
                      pixels);
}

Tensor finish_image(Image image, const ImageOptions& options) {
  const int channels = options.channels == 0 ? image.channels : options.channels;
  return image_tensor(
      fit_image(convert_channels(std::move(image), channels, options.background), options));
}

Tensor load_image(Bytes file, const ImageOptions& options) {
  Decoding decoding;
  decoding.channels = options.channels == 0 ? 3 : options.channels;
  decoding.cover_height = options.height;
  decoding.cover_width = options.width;
  decoding.background = options.background;
  decoding.max_pixels = options.max_pixels;
  return image_tensor(fit_image(decode_image(file, decoding), options));
}

}  // namespace dais::data
