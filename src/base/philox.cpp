#include "base/philox.h"

#include <cmath>
#include <numbers>

namespace dais {

double Philox::normal(uint64_t counter) const {
  const Block bits = block(counter);
  // One minus the first number keeps zero away from the logarithm.
  return std::sqrt(-2 * std::log(1 - unit(bits, 0))) *
         std::cos(2 * std::numbers::pi * unit(bits, 2));
}

}  // namespace dais
