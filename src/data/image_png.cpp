#include <png.h>

#include <csetjmp>
#include <cstring>

#include "data/image.h"

namespace dais::data {
namespace {

/// What the library's callbacks see: the file, and where to leave a broken one.
struct Source {
  Bytes bytes;
  size_t at = 0;
  char reason[128] = "it is broken";
};

void read_some(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->at) png_error(png, "it ends early");
  std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
}

void leave(png_structp png, png_const_charp reason) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->reason, reason, sizeof source->reason - 1);
  png_longjmp(png, 1);
}

void stay_silent(png_structp, png_const_charp) {}

struct Reader {
  explicit Reader(Bytes file) : source{file} {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, leave, stay_silent);
    info = png ? png_create_info_struct(png) : nullptr;
    if (!info) throw Error(Code::exhausted, "no memory to decode a PNG");
    png_set_read_fn(png, &source, read_some);
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;

  Source source;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

bool read_header(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_user_limits(reader.png, 1U << 24, 1U << 24);
  png_set_chunk_malloc_max(reader.png, 8U << 20);
  png_read_info(reader.png, reader.info);
  return true;
}

bool has_alpha(const Reader& reader) {
  return (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) != 0 ||
         png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0;
}

bool has_color(const Reader& reader) {
  return (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) != 0;
}

/// Every form becomes gray, gray with alpha, RGB or RGBA of 8 bits; class numbers stay as stored.
bool set_up(Reader& reader, bool indices) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_structp png = reader.png;
  if (indices && png_get_color_type(png, reader.info) == PNG_COLOR_TYPE_PALETTE) {
    png_set_packing(png);
  } else if (indices) {
    // Gray levels are class numbers: widened without scaling.
    png_set_packing(png);
    png_set_strip_alpha(png);
  } else {
    png_set_expand(png);
    png_set_scale_16(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  return true;
}

bool read_rows(Reader& reader, Image& image, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  for (int64_t y = 0; y < image.height; ++y) rows[y] = image.row(y);
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

bool is_png(Bytes file) {
  return file.size() > 8 && std::memcmp(file.data(), "\x89PNG\r\n\x1a\n", 8) == 0;
}

std::optional<ImageHeader> png_header(Bytes file) {
  Reader reader(file);
  if (!read_header(reader)) return std::nullopt;
  return ImageHeader{png_get_image_height(reader.png, reader.info),
                     png_get_image_width(reader.png, reader.info),
                     has_alpha(reader)   ? 4
                     : has_color(reader) ? 3
                                         : 1};
}

Image decode_png_file(Bytes file, const Decoding& decoding, bool indices) {
  Reader reader(file);
  if (!read_header(reader)) refuse_image(reader.source.reason);
  if (indices && png_get_bit_depth(reader.png, reader.info) == 16)
    refuse_image("a mask of 16 bits a pixel holds more classes than 255");
  if (indices && png_get_color_type(reader.png, reader.info) != PNG_COLOR_TYPE_PALETTE &&
      has_color(reader))
    refuse_image("a mask must be gray or have a palette, its class numbers");
  if (!set_up(reader, indices)) refuse_image(reader.source.reason);
  Image image;
  image.allocate(png_get_image_height(reader.png, reader.info),
                 png_get_image_width(reader.png, reader.info),
                 png_get_channels(reader.png, reader.info), decoding.max_pixels);
  std::vector<png_bytep> rows(static_cast<size_t>(image.height));
  if (!read_rows(reader, image, rows.data())) refuse_image(reader.source.reason);
  return image;
}

namespace {

void append(png_structp png, png_bytep data, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(data), count);
}

bool write_rows(png_structp png, png_infop info, const Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, kTypes[image.channels],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(png, image.row(y));
  png_write_end(png, info);
  return true;
}

}  // namespace

std::string encode_png(const Image& image) {
  Source source;
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &source, leave, stay_silent);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) throw Error(Code::exhausted, "no memory to encode a PNG");
  png_set_write_fn(png, &out, append, nullptr);
  const bool done = write_rows(png, info, image);
  png_destroy_write_struct(&png, &info);
  if (!done) throw Error(Code::unsupported, std::string("cannot encode a PNG: ") + source.reason);
  return out;
}

}  // namespace dais::data
