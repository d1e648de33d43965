#include "ops/image_decoder/image_decoder.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/image_decoder/decode.h"

namespace dais {

bool RgbImage::resize(int64_t new_height, int64_t new_width) {
  constexpr int64_t kMaxPixels = int64_t{1} << 28;
  if (new_height < 1 || new_width < 1 || new_height > kMaxPixels / new_width) return false;
  height = new_height;
  width = new_width;
  pixels.assign(static_cast<size_t>(height * width * 3), 0);
  return true;
}

std::optional<RgbImage> decode_image(FileBytes file) {
  auto starts = [&](std::initializer_list<int> head, size_t at = 0) {
    if (file.size() < at + head.size()) return false;
    size_t i = at;
    for (int byte : head)
      if (file[i++] != byte) return false;
    return true;
  };
  if (starts({0xff, 0xd8, 0xff})) return decode_jpeg(file);
  if (starts({0x89, 'P', 'N', 'G'})) return decode_png(file);
  if (starts({'B', 'M'})) return decode_bmp(file);
  if (starts({'R', 'I', 'F', 'F'}) && starts({'W', 'E', 'B', 'P'}, 8)) return decode_webp(file);
  if (starts({'I', 'I', 42, 0}) || starts({'M', 'M', 0, 42})) return decode_tiff(file);
  if (starts({0, 0, 0, 12, 'j', 'P'}) || starts({0xff, 0x4f, 0xff, 0x51}))
    return decode_jpeg2000(file);
  if (file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6')
    return decode_pnm(file);
  return std::nullopt;
}

namespace {

void infer(Inference& c) {
  const auto& format = c.attrs<ImageDecoder>().pixel_format;
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    c.fail("the pixel format '" + format + "' is unknown", "Use RGB, BGR or Grayscale");
  c.set(0, DType::u8, {c.fresh(), c.fresh(), format == "Grayscale" ? 1 : 3});
  c.require(c.dtype(0) == DType::u8, "the file is not given as bytes");
}

/// Luma of ITU-R BT.601 in 16-bit fixed point.
uint8_t gray(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

void reference(Call& c) {
  const auto file = c.in(0).data<uint8_t>();
  const RgbImage image = decode_image(file).value_or(RgbImage{});
  const auto& format = c.attrs<ImageDecoder>().pixel_format;
  const int64_t channels = format == "Grayscale" ? 1 : 3;
  Tensor& y = c.out(0, Shape{image.height, image.width, channels});
  uint8_t* to = y.data<uint8_t>().data();
  const bool swap = format == "BGR";
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const uint8_t* rgb = image.pixels.data() + i;
    if (channels == 1) {
      *to++ = gray(rgb);
      continue;
    }
    *to++ = rgb[swap ? 2 : 0];
    *to++ = rgb[1];
    *to++ = rgb[swap ? 0 : 2];
  }
}

}  // namespace

const Op ImageDecoder::op{
    .name = "image_decoder",
    .attrs = &AttrsOf<ImageDecoder>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"ImageDecoder", 20}},
};

namespace ops {
void define_image_decoder(OpRegistry& registry) { registry.add(ImageDecoder::op); }
}  // namespace ops
}  // namespace dais
