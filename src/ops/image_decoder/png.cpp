#include <png.h>

#include <csetjmp>
#include <cstring>

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* rest = static_cast<FileBytes*>(png_get_io_ptr(png));
  if (count > rest->size()) png_error(png, "the file ends early");
  std::memcpy(to, rest->data(), count);
  *rest = rest->subspan(count);
}

void stay_silent(png_structp, png_const_charp) {}
void leave(png_structp png, png_const_charp) { png_longjmp(png, 1); }

/// All objects with destructors live in the caller: the jump must not skip any.
bool decode(png_structp png, png_infop info, FileBytes& file, RgbImage& image,
            std::vector<png_bytep>& rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &file, read_bytes);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (!image.resize(png_get_image_height(png, info), png_get_image_width(png, info)) ||
      png_get_rowbytes(png, info) != static_cast<size_t>(image.width) * 3)
    return false;
  for (int64_t y = 0; y < image.height; ++y) rows.push_back(image.row(y));
  png_read_image(png, rows.data());
  return true;
}

}  // namespace

std::optional<RgbImage> decode_png(FileBytes file) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, stay_silent);
  if (!png) return std::nullopt;
  png_infop info = png_create_info_struct(png);
  std::optional<RgbImage> image(std::in_place);
  std::vector<png_bytep> rows;
  const bool done = info && decode(png, info, file, *image, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!done) image.reset();
  return image;
}

}  // namespace dais
