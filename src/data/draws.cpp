#include "data/draws.h"

#include <algorithm>
#include <cmath>

namespace dais::data {

/// The rejection method of Marsaglia and Tsang (2000); shapes below 1 by their boost.
double Draws::gamma(double shape) {
  if (shape < 1) {
    const double boost = std::pow(1 - uniform(), 1 / shape);
    return boost * gamma(shape + 1);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v > 0 && std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

void Draws::add_normal(float* values, int64_t count, float sd) {
  constexpr float kUnit = 0x1p-32F, kTurn = 6.2831853F;
  for (int64_t i = 0; i < count; i += 4) {
    const Philox::Block bits = philox_.block(counter_++);
    float drawn[4];
    for (size_t half = 0; half < 4; half += 2) {
      // Away from zero, for the logarithm.
      const float size = (static_cast<float>(bits[half]) + 0.5F) * kUnit;
      const float angle = static_cast<float>(bits[half + 1]) * kUnit * kTurn;
      const float radius = sd * std::sqrt(-2 * std::log(std::min(size, 1.0F)));
      drawn[half] = radius * std::cos(angle);
      drawn[half + 1] = radius * std::sin(angle);
    }
    for (int64_t k = i; k < std::min(i + 4, count); ++k) values[k] += drawn[k - i];
  }
}

double Draws::beta(double alpha) {
  const double a = gamma(alpha), b = gamma(alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

}  // namespace dais::data
