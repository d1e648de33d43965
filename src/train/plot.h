#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dais::train {

/// One curve. Points that are not finite leave a gap.
struct Curve {
  std::string name;
  std::vector<double> x, y;
};

/// A chart of curves with linear axes that just hold all points.
struct Chart {
  std::string title, x_label;
  std::vector<Curve> curves;

  std::string svg() const;
  /// Lines of text for a terminal `columns` wide, `rows` high without the axis.
  std::string text(int columns = 72, int rows = 14) const;
};

/// Charts below one another over the same stretch of x, as one picture by the ending of the path:
/// .svg or .png. Throws `invalid_argument` for another ending.
void write_charts(const std::filesystem::path& path, const std::vector<Chart>& charts);

}  // namespace dais::train
