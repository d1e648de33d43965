// The library's header needs the standard ones before it.
// clang-format off
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

/// The library leaves a broken file by a jump, never by an exception through its frames.
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf leave;
};

void leave(j_common_ptr info) { std::longjmp(reinterpret_cast<Errors*>(info->err)->leave, 1); }

void stay_silent(j_common_ptr, int) {}

/// CMYK as Adobe programs write it, inverted.
void from_cmyk(const std::vector<uint8_t>& line, uint8_t* to) {
  for (size_t i = 0; i + 3 < line.size(); i += 4)
    for (size_t k = 0; k < 3; ++k)
      *to++ = static_cast<uint8_t>((line[i + k] * line[i + 3] + 127) / 255);
}

/// All objects with destructors live in the caller: the jump must not skip any.
bool decode(jpeg_decompress_struct& info, Errors& errors, FileBytes file, RgbImage& image,
            std::vector<uint8_t>& line) {
  if (setjmp(errors.leave) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) return false;
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&info);
  if (!image.resize(info.output_height, info.output_width)) return false;
  line.resize(size_t{info.output_width} * static_cast<size_t>(info.output_components));
  while (info.output_scanline < info.output_height) {
    uint8_t* to = image.row(info.output_scanline);
    JSAMPROW row = info.out_color_space == JCS_CMYK ? line.data() : to;
    if (jpeg_read_scanlines(&info, &row, 1) != 1) return false;
    if (row != to) from_cmyk(line, to);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

std::optional<RgbImage> decode_jpeg(FileBytes file) {
  jpeg_decompress_struct info{};
  Errors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = stay_silent;
  std::optional<RgbImage> image(std::in_place);
  std::vector<uint8_t> line;
  const bool done = decode(info, errors, file, *image, line);
  jpeg_destroy_decompress(&info);
  if (!done) image.reset();
  return image;
}

}  // namespace dais
