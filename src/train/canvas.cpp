#include <png.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "train/plot_frame.h"

namespace dais::train {
namespace {

/// Glyphs of 3 x 5 cells, row by row from the top, left cell highest: five octal digits each.
struct Glyph {
  char character;
  uint32_t rows;
};
constexpr Glyph kGlyphs[] = {
    {'0', 075557}, {'1', 026227}, {'2', 071747}, {'3', 071717}, {'4', 055711}, {'5', 074717},
    {'6', 074757}, {'7', 071111}, {'8', 075757}, {'9', 075717}, {'A', 075755}, {'B', 065656},
    {'C', 074447}, {'D', 065556}, {'E', 074647}, {'F', 074644}, {'G', 074557}, {'H', 055755},
    {'I', 072227}, {'J', 011157}, {'K', 055655}, {'L', 044447}, {'M', 057755}, {'N', 065555},
    {'O', 075557}, {'P', 075744}, {'Q', 075571}, {'R', 065655}, {'S', 074717}, {'T', 072222},
    {'U', 055557}, {'V', 055552}, {'W', 055775}, {'X', 055255}, {'Y', 055222}, {'Z', 071247},
    {'.', 000002}, {'-', 000700}, {'%', 051245}, {'/', 011244}, {':', 002020}, {'+', 002720},
    {'(', 024442}, {')', 021112}, {'_', 000007}, {',', 000024},
};

uint32_t glyph(char character) {
  const char capital = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  for (const Glyph& entry : kGlyphs)
    if (entry.character == capital) return entry.rows;
  return 0;
}

constexpr int kGlyphWidth = 3, kGlyphHeight = 5;

struct PngBytes {
  std::string bytes;
  static void append(png_structp png, png_bytep data, size_t size) {
    static_cast<PngBytes*>(png_get_io_ptr(png))
        ->bytes.append(reinterpret_cast<const char*>(data), size);
  }
  static void flush(png_structp) {}
  [[noreturn]] static void fail(png_structp, png_const_charp message) {
    throw Error(Code::internal, std::string("PNG writer: ") + message);
  }
};

}  // namespace

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      pixels_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 255) {}

void Canvas::dot(int x, int y, uint32_t colour) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  uint8_t* at =
      &pixels_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  for (int channel = 0; channel < 3; ++channel)
    at[channel] = static_cast<uint8_t>(colour >> (16 - 8 * channel));
}

void Canvas::line(double x0, double y0, double x1, double y1, uint32_t colour, int thickness) {
  const double length = std::max({std::fabs(x1 - x0), std::fabs(y1 - y0), 1.0});
  const int steps = static_cast<int>(std::ceil(length));
  for (int i = 0; i <= steps; ++i) {
    const double part = static_cast<double>(i) / steps;
    const int x = static_cast<int>(std::lround(x0 + (x1 - x0) * part));
    const int y = static_cast<int>(std::lround(y0 + (y1 - y0) * part));
    for (int dy = 0; dy < thickness; ++dy)
      for (int dx = 0; dx < thickness; ++dx) dot(x + dx, y + dy, colour);
  }
}

void Canvas::text(int x, int y, const std::string& text, uint32_t colour, int scale) {
  for (const char character : text) {
    const uint32_t rows = glyph(character);
    for (int row = 0; row < kGlyphHeight * scale; ++row)
      for (int column = 0; column < kGlyphWidth * scale; ++column) {
        const int bit = (kGlyphHeight - 1 - row / scale) * 3 + (kGlyphWidth - 1 - column / scale);
        if (rows >> bit & 1) dot(x + column, y + row, colour);
      }
    x += (kGlyphWidth + 1) * scale;
  }
}

int Canvas::text_width(const std::string& text, int scale) {
  return static_cast<int>(text.size()) * (kGlyphWidth + 1) * scale;
}

void Canvas::write_png(const std::filesystem::path& path) const {
  PngBytes out;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, PngBytes::fail, nullptr);
  if (!png) throw Error(Code::exhausted, "no memory for the PNG writer", path.string());
  png_infop info = png_create_info_struct(png);
  try {
    png_set_write_fn(png, &out, PngBytes::append, PngBytes::flush);
    png_set_IHDR(png, info, static_cast<png_uint_32>(width_), static_cast<png_uint_32>(height_), 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    const size_t row = static_cast<size_t>(width_) * 3;
    for (size_t at = 0; at < pixels_.size(); at += row) png_write_row(png, &pixels_[at]);
    png_write_end(png, info);
  } catch (...) {
    png_destroy_write_struct(&png, &info);
    throw;
  }
  png_destroy_write_struct(&png, &info);
  write_file(path, out.bytes);
}

}  // namespace dais::train
