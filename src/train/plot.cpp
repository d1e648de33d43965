#include "train/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "train/plot_frame.h"

namespace dais::train {
namespace {

constexpr int kWidth = 860, kHeight = 300;
constexpr int kLeft = 84, kRight = 20, kTop = 44, kBottom = 40;
constexpr int kTicks = 4;
constexpr uint32_t kInk = 0x333333, kGrid = 0xDDDDDD;

double plot_width() { return kWidth - kLeft - kRight; }
double plot_height() { return kHeight - kTop - kBottom; }

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

/// Places in pixels of what a chart shows, for any way of drawing.
template <typename Line, typename Text, typename Path>
void draw(const Chart& chart, double top, Line&& line, Text&& text, Path&& path) {
  const Frame frame(chart);
  const double bottom = top + kHeight - kBottom;
  for (int i = 0; i <= kTicks; ++i) {
    const double part = static_cast<double>(i) / kTicks;
    const double y = bottom - part * plot_height(), x = kLeft + part * plot_width();
    line(kLeft, y, kWidth - kRight, y, kGrid);
    line(x, top + kTop, x, bottom, kGrid);
    text(kLeft - 8, y, short_number(frame.y_low + part * (frame.y_high - frame.y_low)), kInk, 1);
    text(x, bottom + 14, short_number(frame.x_low + part * (frame.x_high - frame.x_low)), kInk, 0);
  }
  text(kLeft, top + 12, chart.title, kInk, -1);
  text(kWidth - kRight, bottom + 30, chart.x_label, kInk, 1);
  double key = kLeft;
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    text(key, top + 32, curve.name, curve_colour(i), -1);
    key += 8.0 * static_cast<double>(curve.name.size()) + 20;
    std::vector<std::pair<double, double>> points;
    for (size_t k = 0; k < curve.x.size(); ++k) {
      if (std::isfinite(curve.x[k]) && std::isfinite(curve.y[k])) {
        points.emplace_back(kLeft + frame.across(curve.x[k]) * plot_width(),
                            bottom - frame.up(curve.y[k]) * plot_height());
        continue;
      }
      path(points, curve_colour(i));
      points.clear();
    }
    path(points, curve_colour(i));
  }
}

std::string svg_body(const Chart& chart, double top) {
  std::string out;
  char piece[256];
  const auto line = [&](double x0, double y0, double x1, double y1, uint32_t colour) {
    std::snprintf(piece, sizeof piece,
                  "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#%06x\"/>\n", x0,
                  y0, x1, y1, colour);
    out += piece;
  };
  const auto text = [&](double x, double y, const std::string& words, uint32_t colour, int side) {
    const char* anchor = side < 0 ? "start" : side > 0 ? "end" : "middle";
    std::snprintf(piece, sizeof piece,
                  "<text x=\"%.1f\" y=\"%.1f\" fill=\"#%06x\" text-anchor=\"%s\" "
                  "font-family=\"sans-serif\" font-size=\"12\">",
                  x, y + 4, colour, anchor);
    out += piece + escaped(words) + "</text>\n";
  };
  const auto path = [&](const std::vector<std::pair<double, double>>& points, uint32_t colour) {
    if (points.empty()) return;
    std::snprintf(piece, sizeof piece,
                  "<polyline fill=\"none\" stroke=\"#%06x\" stroke-width=\"1.5\" points=\"",
                  colour);
    out += piece;
    for (const auto& [x, y] : points) {
      std::snprintf(piece, sizeof piece, "%.1f,%.1f ", x, y);
      out += piece;
    }
    out += "\"/>\n";
  };
  draw(chart, top, line, text, path);
  return out;
}

std::string svg_document(const std::vector<Chart>& charts) {
  const int height = kHeight * static_cast<int>(charts.size());
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
                    "\" height=\"" + std::to_string(height) +
                    "\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (size_t i = 0; i < charts.size(); ++i)
    out += svg_body(charts[i], static_cast<double>(kHeight) * static_cast<double>(i));
  return out + "</svg>\n";
}

void draw_png(const std::vector<Chart>& charts, const std::filesystem::path& path_of_file) {
  Canvas canvas(kWidth, kHeight * static_cast<int>(charts.size()));
  const auto line = [&](double x0, double y0, double x1, double y1, uint32_t colour) {
    canvas.line(x0, y0, x1, y1, colour);
  };
  const auto text = [&](double x, double y, const std::string& words, uint32_t colour, int side) {
    const int width = Canvas::text_width(words);
    const int shift = side < 0 ? 0 : side > 0 ? width : width / 2;
    canvas.text(static_cast<int>(x) - shift, static_cast<int>(y) - 5, words, colour);
  };
  const auto path = [&](const std::vector<std::pair<double, double>>& points, uint32_t colour) {
    if (points.size() == 1)
      canvas.line(points[0].first, points[0].second, points[0].first, points[0].second, colour, 3);
    for (size_t i = 1; i < points.size(); ++i)
      canvas.line(points[i - 1].first, points[i - 1].second, points[i].first, points[i].second,
                  colour, 2);
  };
  for (size_t i = 0; i < charts.size(); ++i)
    draw(charts[i], static_cast<double>(kHeight) * static_cast<double>(i), line, text, path);
  canvas.write_png(path_of_file);
}

}  // namespace

Frame::Frame(const Chart& chart) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  x_low = y_low = infinity;
  x_high = y_high = -infinity;
  for (const Curve& curve : chart.curves)
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!std::isfinite(curve.x[i]) || !std::isfinite(curve.y[i])) continue;
      x_low = std::min(x_low, curve.x[i]);
      x_high = std::max(x_high, curve.x[i]);
      y_low = std::min(y_low, curve.y[i]);
      y_high = std::max(y_high, curve.y[i]);
    }
  if (x_low > x_high) x_low = y_low = 0, x_high = y_high = 1;
  if (x_low == x_high) x_high = x_low + 1;
  if (y_low == y_high) {
    const double room = std::max(std::fabs(y_low) * 0.1, 1e-12);
    y_low -= room;
    y_high += room;
  }
}

std::string short_number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3g", std::fabs(value) < 1e-15 ? 0 : value);
  return out;
}

uint32_t curve_colour(size_t index) {
  static constexpr uint32_t colours[] = {0x1F77B4, 0xD62728, 0x2CA02C, 0x9467BD, 0xFF7F0E};
  return colours[index % std::size(colours)];
}

std::string Chart::svg() const { return svg_document({*this}); }

std::string Chart::text(int columns, int rows) const {
  const Frame frame(*this);
  std::vector<std::string> cells(static_cast<size_t>(rows),
                                 std::string(static_cast<size_t>(columns), ' '));
  static constexpr char marks[] = "*o+x#";
  for (size_t i = 0; i < curves.size(); ++i)
    for (size_t k = 0; k < curves[i].x.size(); ++k) {
      if (!std::isfinite(curves[i].x[k]) || !std::isfinite(curves[i].y[k])) continue;
      const auto column = std::lround(frame.across(curves[i].x[k]) * (columns - 1));
      const auto row = std::lround((1 - frame.up(curves[i].y[k])) * (rows - 1));
      cells[static_cast<size_t>(row)][static_cast<size_t>(column)] = marks[i % 5];
    }
  std::string out = title + "\n";
  for (int row = 0; row < rows; ++row) {
    const double part = rows > 1 ? 1 - static_cast<double>(row) / (rows - 1) : 0;
    char label[32];
    std::snprintf(label, sizeof label, "%10s |",
                  short_number(frame.y_low + part * (frame.y_high - frame.y_low)).c_str());
    out += label + cells[static_cast<size_t>(row)] + "\n";
  }
  const std::string low = short_number(frame.x_low), high = short_number(frame.x_high);
  const auto gap = std::max<int>(1, columns - static_cast<int>(low.size() + high.size()));
  return out + std::string(12, ' ') + low + std::string(static_cast<size_t>(gap), ' ') + high +
         (x_label.empty() ? "" : "  " + x_label) + "\n";
}

void write_charts(const std::filesystem::path& path, const std::vector<Chart>& charts) {
  if (path.extension() == ".svg") return write_file(path, svg_document(charts));
  if (path.extension() == ".png") return draw_png(charts, path);
  throw Error(Code::invalid_argument, "a chart cannot be written in this form", path.string(),
              "Give a name that ends in .svg or .png");
}

}  // namespace dais::train
