#pragma once

#include <cstdint>

namespace dais {

struct Moments {
  double mean = 0;
  double variance = 0;  ///< of the population, by a second pass around the mean
};
Moments moments_of(const double* values, int64_t count);

}  // namespace dais
