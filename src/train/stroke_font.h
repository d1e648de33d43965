#pragma once

#include <algorithm>
#include <array>
#include <vector>

namespace dais::train {

using Point = std::array<double, 2>;
using Stroke = std::vector<Point>;

/// A character as strokes on a grid where capitals are nine units high; y is upwards from the base
/// line.
struct Glyph {
  std::vector<Stroke> strokes;
  int advance = 0;  ///< units to the next character
};

/// Letters, digits and what numbers need; anything else is a space.
Glyph glyph(char character);

}  // namespace dais::train
