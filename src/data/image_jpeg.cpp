// The library's header needs the standard ones before it.
// clang-format off
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <cstdlib>
#include <memory>

#include "data/image.h"

namespace dais::data {
namespace {

/// The library leaves a broken file by a jump, never by an exception through its frames.
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf leave;
  char reason[JMSG_LENGTH_MAX];
};

void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->reason);
  std::longjmp(errors->leave, 1);
}

/// A file that ends early would be filled up with gray: as good as unreadable. Other warnings
/// (stray bytes between markers) are common in sound pictures.
void on_message(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER))
    leave(info);
}

/// Setting a decoder up costs as much as decoding a small picture: one is kept for each thread.
class Decoder {
 public:
  Decoder() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.emit_message = on_message;
    if (setjmp(errors.leave) != 0) return;
    jpeg_create_decompress(&info);
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;

  jpeg_decompress_struct info{};
  Errors errors{};
};

Decoder& this_threads_decoder() {
  thread_local Decoder decoder;
  return decoder;
}

bool read_header(Decoder& decoder, Bytes file) {
  if (setjmp(decoder.errors.leave) != 0) return false;
  jpeg_mem_src(&decoder.info, file.data(), file.size());
  return jpeg_read_header(&decoder.info, TRUE) == JPEG_HEADER_OK;
}

/// The largest of 1, 2, 4, 8 by which the picture may shrink and still cover twice the target.
unsigned shrink_of(const jpeg_decompress_struct& info, const Decoding& decoding) {
  if (decoding.cover_height < 1 || decoding.cover_width < 1) return 1;
  unsigned shrink = 8;
  while (shrink > 1 && (info.image_height / shrink < 2 * decoding.cover_height ||
                        info.image_width / shrink < 2 * decoding.cover_width))
    shrink /= 2;
  return shrink;
}

bool start(Decoder& decoder, const Decoding& decoding) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.errors.leave) != 0) return false;
  info.scale_num = 1;
  info.scale_denom = shrink_of(info, decoding);
  const bool inks = info.num_components == 4;
  info.out_color_space = inks ? JCS_CMYK : decoding.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  return jpeg_start_decompress(&info);
}

/// Inks as Adobe programs write them, inverted.
void from_inks(const uint8_t* line, int64_t width, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, line += 4)
    for (int k = 0; k < 3; ++k) *to++ = static_cast<uint8_t>((line[k] * line[3] + 127) / 255);
}

/// Objects with destructors live in the callers: the jump must not skip any.
bool read_rows(Decoder& decoder, Image& image, uint8_t* line) {
  jpeg_decompress_struct& info = decoder.info;
  if (setjmp(decoder.errors.leave) != 0) return false;
  while (info.output_scanline < info.output_height) {
    uint8_t* to = image.row(info.output_scanline);
    JSAMPROW row = line ? line : to;
    if (jpeg_read_scanlines(&info, &row, 1) != 1) return false;
    if (line) from_inks(line, image.width, to);
  }
  return jpeg_finish_decompress(&info);
}

/// Ends a decoding however it went, so that the next one finds the decoder idle.
struct Idle {
  Decoder& decoder;
  ~Idle() { jpeg_abort_decompress(&decoder.info); }
};

}  // namespace

bool is_jpeg(Bytes file) {
  return file.size() > 3 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

std::optional<ImageHeader> jpeg_header(Bytes file) {
  Decoder& decoder = this_threads_decoder();
  const Idle idle{decoder};
  if (!read_header(decoder, file)) return std::nullopt;
  return ImageHeader{decoder.info.image_height, decoder.info.image_width,
                     decoder.info.num_components == 1 ? 1 : 3};
}

Image decode_jpeg_file(Bytes file, const Decoding& decoding) {
  Decoder& decoder = this_threads_decoder();
  const Idle idle{decoder};
  const jpeg_decompress_struct& info = decoder.info;
  if (!read_header(decoder, file)) refuse_image(decoder.errors.reason);
  // A progressive file keeps all coefficients, so its own size counts before any shrinking.
  if (int64_t{info.image_height} * info.image_width > decoding.max_pixels)
    refuse_image("it has " + std::to_string(info.image_width) + "x" +
                 std::to_string(info.image_height) + " pixels");
  if (!start(decoder, decoding)) refuse_image(decoder.errors.reason);
  Image image;
  const bool inks = info.out_color_space == JCS_CMYK;
  image.allocate(info.output_height, info.output_width, inks ? 3 : info.output_components,
                 decoding.max_pixels);
  std::vector<uint8_t> line(inks ? size_t{info.output_width} * 4 : 0);
  if (!read_rows(decoder, image, inks ? line.data() : nullptr)) refuse_image(decoder.errors.reason);
  return image;
}

namespace {

struct Encoded {
  unsigned char* data = nullptr;
  unsigned long size = 0;
  ~Encoded() { std::free(data); }
};

bool encode(jpeg_compress_struct& info, Errors& errors, const Image& image, int quality,
            Encoded& out) {
  if (setjmp(errors.leave) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &out.data, &out.size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(info.next_scanline));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  DAIS_CHECK(image.channels == 1 || image.channels == 3);
  jpeg_compress_struct info{};
  Errors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  Encoded out;
  const bool done = encode(info, errors, image, quality, out);
  jpeg_destroy_compress(&info);
  if (!done) throw Error(Code::unsupported, std::string("cannot encode a JPEG: ") + errors.reason);
  return {reinterpret_cast<const char*>(out.data), out.size};
}

}  // namespace dais::data
