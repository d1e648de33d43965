#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/plot.h"
#include "train/stroke_font.h"

namespace dais::train {

/// The ranges of a chart and where its points fall on a unit square with y upwards.
struct Frame {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;

  explicit Frame(const Chart& chart);
  double across(double x) const { return (x - x_low) / (x_high - x_low); }
  double up(double y) const { return (y - y_low) / (y_high - y_low); }
};

/// A number in few characters, for axes.
std::string short_number(double value);

/// Colours of curves in order, 0xRRGGBB.
uint32_t curve_colour(size_t index);

/// Round numbers within a range, three to eight of them.
std::vector<double> ticks(double low, double high);

/// A picture of 8-bit RGB pixels with what charts need: smooth lines and text.
class Canvas {
 public:
  Canvas(int width, int height);
  /// A row of points; one alone is a dot.
  void path(const Stroke& points, uint32_t colour, double thickness);
  /// Text from x on its base line, nine pixels high.
  void text(int x, int base, const std::string& words, uint32_t colour, double thickness = 1.2);
  static int text_width(const std::string& words);
  /// Throws `unavailable` or `exhausted` naming the path.
  void write_png(const std::filesystem::path& path) const;

 private:
  void blend(int x, int y, uint32_t colour, double share);

  int width_, height_;
  std::vector<uint8_t> pixels_;
};

}  // namespace dais::train
