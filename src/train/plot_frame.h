#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/plot.h"

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

/// A picture of 8-bit RGB pixels with what charts need: lines and small capitals.
class Canvas {
 public:
  Canvas(int width, int height);
  void line(double x0, double y0, double x1, double y1, uint32_t colour, int thickness = 1);
  void text(int x, int y, const std::string& text, uint32_t colour, int scale = 2);
  static int text_width(const std::string& text, int scale = 2);
  /// Throws `unavailable` or `exhausted` naming the path.
  void write_png(const std::filesystem::path& path) const;

 private:
  void dot(int x, int y, uint32_t colour);

  int width_, height_;
  std::vector<uint8_t> pixels_;
};

}  // namespace dais::train
