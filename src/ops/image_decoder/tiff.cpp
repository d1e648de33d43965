#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/image_decoder/decode.h"

namespace dais {
namespace {

/// A file in memory with a reading position, as the library's callbacks want it.
struct Memory {
  FileBytes bytes;
  toff_t at = 0;
};

tmsize_t read_some(thandle_t handle, void* to, tmsize_t wanted) {
  auto* memory = static_cast<Memory*>(handle);
  if (memory->at >= memory->bytes.size() || wanted <= 0) return 0;
  const size_t left = memory->bytes.size() - static_cast<size_t>(memory->at);
  const size_t count = std::min(static_cast<size_t>(wanted), left);
  std::memcpy(to, memory->bytes.data() + memory->at, count);
  memory->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int origin) {
  auto* memory = static_cast<Memory*>(handle);
  if (origin == SEEK_SET) memory->at = offset;
  if (origin == SEEK_CUR) memory->at += offset;
  if (origin == SEEK_END) memory->at = memory->bytes.size() + offset;
  return memory->at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Memory*>(handle)->bytes.size(); }

/// The library would print to the error stream of the whole process.
void silence_messages() {
  static const bool once = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

std::optional<RgbImage> decode_tiff(FileBytes file) {
  silence_messages();
  Memory memory{file};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpen("image", "rm", &memory, read_some, write_nothing, seek, close_nothing, size_of,
                     nullptr, nullptr),
      TIFFClose);
  if (!tiff) return std::nullopt;
  uint32_t width = 0, height = 0;
  RgbImage image;
  if (!TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) || !image.resize(height, width))
    return std::nullopt;
  std::vector<uint32_t> packed(size_t{width} * height);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, packed.data(), ORIENTATION_TOPLEFT, 1))
    return std::nullopt;
  uint8_t* to = image.pixels.data();
  for (uint32_t pixel : packed) {
    *to++ = static_cast<uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return image;
}

}  // namespace dais
