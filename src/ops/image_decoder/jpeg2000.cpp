#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

/// A file in memory with a reading position, as the library's callbacks want it.
struct Memory {
  FileBytes bytes;
  size_t at = 0;
};

OPJ_SIZE_T read_some(void* to, OPJ_SIZE_T wanted, void* data) {
  auto* memory = static_cast<Memory*>(data);
  const size_t count = std::min<size_t>(wanted, memory->bytes.size() - memory->at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, memory->bytes.data() + memory->at, count);
  memory->at += count;
  return count;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* data) {
  auto* memory = static_cast<Memory*>(data);
  if (count < 0) return -1;
  const auto left = static_cast<OPJ_OFF_T>(memory->bytes.size() - memory->at);
  memory->at += static_cast<size_t>(std::min(count, left));
  return std::min(count, left);
}

OPJ_BOOL seek(OPJ_OFF_T place, void* data) {
  auto* memory = static_cast<Memory*>(data);
  if (place < 0 || static_cast<size_t>(place) > memory->bytes.size()) return OPJ_FALSE;
  memory->at = static_cast<size_t>(place);
  return OPJ_TRUE;
}

using Stream = std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)>;
using Codec = std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)>;
using Image = std::unique_ptr<opj_image_t, void (*)(opj_image_t*)>;

Stream open_stream(Memory& memory) {
  Stream stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  opj_stream_set_user_data(stream.get(), &memory, nullptr);
  opj_stream_set_user_data_length(stream.get(), memory.bytes.size());
  opj_stream_set_read_function(stream.get(), read_some);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  return stream;
}

/// A component's value at a pixel of the whole image, scaled to 8 bits.
int component_at(const opj_image_comp_t& part, int64_t y, int64_t x) {
  const int64_t row = std::min<int64_t>(y / part.dy, int64_t{part.h} - 1);
  const int64_t column = std::min<int64_t>(x / part.dx, int64_t{part.w} - 1);
  int64_t value = part.data[row * part.w + column];
  if (part.sgnd) value += int64_t{1} << (part.prec - 1);
  if (part.prec > 8) value >>= part.prec - 8;
  if (part.prec < 8) value = value * 255 / ((int64_t{1} << part.prec) - 1);
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0)); }

bool usable(const opj_image_t& image) {
  if (image.numcomps < 1) return false;
  for (uint32_t i = 0; i < image.numcomps; ++i) {
    const auto& part = image.comps[i];
    if (!part.data || part.w < 1 || part.h < 1 || part.dx < 1 || part.dy < 1 || part.prec < 1 ||
        part.prec > 31)
      return false;
  }
  return true;
}

void write_pixels(const opj_image_t& from, RgbImage& to) {
  const bool color = from.numcomps >= 3;
  const bool luma = color && from.color_space == OPJ_CLRSPC_SYCC;
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x) {
      uint8_t* pixel = to.row(y) + x * 3;
      int parts[3];
      for (uint32_t k = 0; k < 3; ++k) parts[k] = component_at(from.comps[color ? k : 0], y, x);
      if (!luma) {
        for (int k = 0; k < 3; ++k) pixel[k] = static_cast<uint8_t>(parts[k]);
        continue;
      }
      const double blue = parts[1] - 128, red = parts[2] - 128;
      pixel[0] = to_byte(parts[0] + 1.402 * red);
      pixel[1] = to_byte(parts[0] - 0.344136 * blue - 0.714136 * red);
      pixel[2] = to_byte(parts[0] + 1.772 * blue);
    }
}

}  // namespace

std::optional<RgbImage> decode_jpeg2000(FileBytes file) {
  Memory memory{file};
  const Stream stream = open_stream(memory);
  const bool raw = !file.empty() && file[0] == 0xff;
  const Codec codec(opj_create_decompress(raw ? OPJ_CODEC_J2K : OPJ_CODEC_JP2), opj_destroy_codec);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!stream || !codec || !opj_setup_decoder(codec.get(), &parameters)) return std::nullopt;
  opj_image_t* header = nullptr;
  const bool read = opj_read_header(stream.get(), codec.get(), &header);
  const Image image(header, opj_image_destroy);
  RgbImage out;
  if (!read || !image || image->x1 <= image->x0 || image->y1 <= image->y0 ||
      !out.resize(int64_t{image->y1} - image->y0, int64_t{image->x1} - image->x0))
    return std::nullopt;
  if (!opj_decode(codec.get(), stream.get(), image.get()) || !usable(*image)) return std::nullopt;
  write_pixels(*image, out);
  return out;
}

}  // namespace dais
