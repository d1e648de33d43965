#include "data/draws.h"

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

double Draws::beta(double alpha) {
  const double a = gamma(alpha), b = gamma(alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

}  // namespace dais::data
