#include <string>

#include "data/audio.h"
#include "data/image.h"
#include "data/readers.h"
#include "ir/npy.h"

namespace {

using dais::Bytes;

void decode_images(Bytes bytes) {
  dais::data::Decoding decoding;
  decoding.max_pixels = 1 << 20;
  decoding.cover_height = decoding.cover_width = 16;
  dais::data::read_image_header(bytes);
  dais::data::ImageOptions options;
  options.height = options.width = 9;
  options.resize = dais::data::Resize::crop;
  options.max_pixels = 1 << 20;
  dais::data::fit_image(dais::data::decode_image(bytes, decoding), options);
}

void parse(uint8_t kind, Bytes bytes) {
  constexpr size_t kLimit = size_t{1} << 22;
  const dais::data::Blob blob{bytes, nullptr};
  switch (kind % 7) {
    case 0: dais::data::parse_idx(blob, "fuzz"); break;
    case 1: dais::data::parse_zip(blob, kLimit, "fuzz"); break;
    case 2: dais::data::parse_tar(bytes, "fuzz"); break;
    case 3:
      dais::data::parse_csv(blob.text(), ',', "fuzz",
                            [](int64_t, std::span<const std::string_view>) {});
      break;
    case 4: decode_images(bytes); break;
    case 5: dais::data::decode_sound(bytes, 10); break;
    default: dais::parse_npy(bytes, "fuzz");
  }
}

}  // namespace

/// The first byte picks the parser. Each either reads the rest or refuses it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    parse(data[0], {data + 1, size - 1});
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) __builtin_trap();
  }
  return 0;
}
