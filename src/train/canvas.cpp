#include <png.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "train/plot_frame.h"

namespace dais::train {
namespace {

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

namespace {

double distance(const Point& p, const Point& a, const Point& b) {
  const double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
  double part = length > 0 ? ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length : 0;
  part = std::clamp(part, 0.0, 1.0);
  return std::hypot(p[0] - a[0] - part * dx, p[1] - a[1] - part * dy);
}

}  // namespace

void Canvas::blend(int x, int y, uint32_t colour, double share) {
  uint8_t* at =
      &pixels_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  for (int channel = 0; channel < 3; ++channel) {
    const double ink = static_cast<uint8_t>(colour >> (16 - 8 * channel));
    at[channel] = static_cast<uint8_t>(std::lround(at[channel] + (ink - at[channel]) * share));
  }
}

void Canvas::path(const Stroke& points, uint32_t colour, double thickness) {
  if (points.empty()) return;
  // How much of each pixel the path covers, so that its parts do not darken one another.
  std::map<std::pair<int, int>, double> covered;
  const double reach = thickness / 2 + 1;
  for (size_t i = 0; i < std::max<size_t>(1, points.size() - 1); ++i) {
    const Point &a = points[i], &b = points[std::min(i + 1, points.size() - 1)];
    const auto range = [&](size_t axis, int limit) {
      const double low = std::min(a[axis], b[axis]), high = std::max(a[axis], b[axis]);
      return std::pair{std::max(0, static_cast<int>(low - reach)),
                       std::min(limit - 1, static_cast<int>(high + reach))};
    };
    const auto [left, right] = range(0, width_);
    const auto [top, bottom] = range(1, height_);
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) {
        const double share = thickness / 2 + 0.5 - distance({x + 0.5, y + 0.5}, a, b);
        if (share <= 0) continue;
        double& now = covered[{y, x}];
        now = std::max(now, std::min(share, 1.0));
      }
  }
  for (const auto& [place, share] : covered) blend(place.second, place.first, colour, share);
}

void Canvas::text(int x, int base, const std::string& words, uint32_t colour, double thickness) {
  for (const char character : words) {
    const Glyph shape = glyph(character);
    for (Stroke stroke : shape.strokes) {
      for (Point& point : stroke) point = {x + 0.5 + point[0], base - 0.5 - point[1]};
      path(stroke, colour, thickness);
    }
    x += shape.advance;
  }
}

int Canvas::text_width(const std::string& words) {
  int out = 0;
  for (const char character : words) out += glyph(character).advance;
  return out;
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
