#include "train/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/markup.h"
#include "train/plot_frame.h"

namespace dais::train {
namespace {

constexpr int kWidth = 860, kHeight = 300;
constexpr int kLeft = 76, kRight = 28, kTop = 42, kBottom = 46;
constexpr uint32_t kInk = 0x333333, kGrid = 0xE4E4E4, kAxis = 0x888888;
constexpr double kRoom = 0.04;        // of the height, above and below the curves
constexpr size_t kMarkedPoints = 40;  // curves of so few points show each one

enum class Side { left, middle, right };  // where text stands from its place

double plot_width() { return kWidth - kLeft - kRight; }
double plot_height() { return kHeight - kTop - kBottom; }

/// A way of drawing: PNG or SVG.
class Pen {
 public:
  virtual ~Pen() = default;
  virtual void path(const Stroke& points, uint32_t colour, double thickness) = 0;
  virtual void dot(const Point& at, uint32_t colour, double thickness) = 0;
  /// From, about or up to x, on a base line.
  virtual void text(double x, double base, const std::string& words, uint32_t colour, Side side,
                    bool bold = false) = 0;
};

/// Draws one chart with its upper edge at `top`, over the stretch of x that is shared.
class ChartDrawing {
 public:
  ChartDrawing(const Chart& chart, double top, const Frame& shared, Pen& pen)
      : chart_(chart),
        pen_(pen),
        top_(top + kTop),
        bottom_(top + kHeight - kBottom),
        frame_(chart) {
    frame_.x_low = shared.x_low;
    frame_.x_high = shared.x_high;
    const double room = (frame_.y_high - frame_.y_low) * kRoom;
    const bool positive = frame_.y_low >= 0;
    frame_.y_low -= room;
    if (positive) frame_.y_low = std::max(frame_.y_low, 0.0);
    frame_.y_high += room;
  }

  void run() {
    grid();
    pen_.text(kLeft, top_ - 16, chart_.title, kInk, Side::left, true);
    pen_.text(kLeft + plot_width() / 2, bottom_ + 36, chart_.x_label, kInk, Side::middle);
    for (size_t i = 0; i < chart_.curves.size(); ++i) curve(chart_.curves[i], curve_colour(i));
    legend();
  }

 private:
  double x_of(double x) const { return kLeft + frame_.across(x) * plot_width(); }
  double y_of(double y) const { return bottom_ - frame_.up(y) * plot_height(); }

  void grid() {
    // Lines lie in the middle of pixels, where they are sharp.
    const auto sharp = [](double at) { return std::floor(at) + 0.5; };
    for (const double tick : ticks(frame_.y_low, frame_.y_high)) {
      const double y = sharp(y_of(tick));
      pen_.path({{kLeft, y}, {kWidth - kRight, y}}, kGrid, 1);
      pen_.text(kLeft - 10, y + 5, tick_label(tick), kInk, Side::right);
    }
    for (const double tick : ticks(frame_.x_low, frame_.x_high)) {
      const double x = sharp(x_of(tick));
      pen_.path({{x, top_}, {x, bottom_}}, kGrid, 1);
      pen_.text(x, bottom_ + 18, tick_label(tick), kInk, Side::middle);
    }
    const double left = sharp(kLeft), floor = sharp(bottom_);
    pen_.path({{left, top_}, {left, floor}, {kWidth - kRight, floor}}, kAxis, 1);
  }

  void curve(const Curve& curve, uint32_t colour) {
    const bool marked = curve.x.size() <= kMarkedPoints;
    Stroke points;
    const auto draw = [&] {
      if (points.size() > 1) pen_.path(points, colour, 2);
      for (const Point& point : points)
        if (marked || points.size() == 1) pen_.dot(point, colour, 6);
      points.clear();
    };
    for (size_t k = 0; k < curve.x.size(); ++k) {
      if (std::isfinite(curve.x[k]) && std::isfinite(curve.y[k]))
        points.push_back({x_of(curve.x[k]), y_of(curve.y[k])});
      else
        draw();
    }
    draw();
  }

  void legend() {
    double right = kWidth - kRight;
    for (size_t i = chart_.curves.size(); i-- > 0;) {
      const Curve& curve = chart_.curves[i];
      if (curve.name.empty() || curve.x.empty()) continue;
      pen_.text(right, top_ - 16, curve.name, kInk, Side::right);
      right -= Canvas::text_width(curve.name) + 8;
      pen_.path({{right - 22, top_ - 20}, {right, top_ - 20}}, curve_colour(i), 3);
      right -= 44;
    }
  }

  static std::string tick_label(double value) {
    char out[32];
    std::snprintf(out, sizeof out, "%.8g", value);
    return out;
  }

  const Chart& chart_;
  Pen& pen_;
  double top_, bottom_;
  Frame frame_;
};

class SvgPen : public Pen {
 public:
  std::string body;

  void path(const Stroke& points, uint32_t colour, double thickness) override {
    add("<polyline fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.1f\" points=\"", colour,
        thickness);
    for (const Point& point : points) add("%.1f,%.1f ", point[0], point[1]);
    body += "\"/>\n";
  }
  void dot(const Point& at, uint32_t colour, double thickness) override {
    add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#%06x\"/>\n", at[0], at[1],
        thickness / 2, colour);
  }
  void text(double x, double base, const std::string& words, uint32_t colour, Side side,
            bool bold) override {
    static constexpr const char* anchors[] = {"start", "middle", "end"};
    add("<text x=\"%.1f\" y=\"%.1f\" fill=\"#%06x\" text-anchor=\"%s\" font-family=\"sans-serif\" "
        "font-size=\"12\"%s>",
        x, base, colour, anchors[static_cast<size_t>(side)], bold ? " font-weight=\"bold\"" : "");
    body += escape_markup(words) + "</text>\n";
  }

 private:
  template <typename... Parts>
  void add(const char* format, Parts... parts) {
    char piece[256];
    std::snprintf(piece, sizeof piece, format, parts...);
    body += piece;
  }
};

class CanvasPen : public Pen {
 public:
  explicit CanvasPen(Canvas& canvas) : canvas_(canvas) {}

  void path(const Stroke& points, uint32_t colour, double thickness) override {
    canvas_.path(points, colour, thickness);
  }
  void dot(const Point& at, uint32_t colour, double thickness) override {
    canvas_.path({at}, colour, thickness);
  }
  void text(double x, double base, const std::string& words, uint32_t colour, Side side,
            bool bold) override {
    const int width = Canvas::text_width(words);
    const int shift = side == Side::left ? 0 : side == Side::right ? width : width / 2;
    canvas_.text(static_cast<int>(x) - shift, static_cast<int>(base), words, colour,
                 bold ? 1.8 : 1.2);
  }

 private:
  Canvas& canvas_;
};

/// Charts of one picture show the same stretch of x.
void draw_all(const std::vector<Chart>& charts, Pen& pen) {
  Chart whole;
  for (const Chart& chart : charts)
    whole.curves.insert(whole.curves.end(), chart.curves.begin(), chart.curves.end());
  const Frame shared(whole);
  for (size_t i = 0; i < charts.size(); ++i)
    ChartDrawing(charts[i], static_cast<double>(kHeight) * static_cast<double>(i), shared, pen)
        .run();
}

std::string svg_document(const std::vector<Chart>& charts) {
  SvgPen pen;
  draw_all(charts, pen);
  const int height = kHeight * static_cast<int>(charts.size());
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
         "\" height=\"" + std::to_string(height) +
         "\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + pen.body + "</svg>\n";
}

void draw_png(const std::vector<Chart>& charts, const std::filesystem::path& path) {
  Canvas canvas(kWidth, kHeight * static_cast<int>(charts.size()));
  CanvasPen pen(canvas);
  draw_all(charts, pen);
  canvas.write_png(path);
}

}  // namespace

std::vector<double> ticks(double low, double high) {
  constexpr double kMost = 7;
  const double rough = (high - low) / kMost;
  double step = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {2.0, 2.5, 2.0})
    if (step < rough) step *= factor;
  std::vector<double> out;
  for (double at = std::ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; ++at)
    out.push_back(at == 0 ? 0 : at * step);
  return out;
}

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
