#pragma once

#include "ops/elementwise/elementwise.h"

namespace dais {

/// Applies one scalar function to n elements: operand pointers in order, all of compute type C.
template <typename C>
using ScalarLoop = void (*)(const C* const* operands, C* out, int64_t n, const double* parameters);

/// The loops of a function; null where it is not defined for that kind of number.
struct ScalarLoops {
  ScalarLoop<double> real = nullptr;
  ScalarLoop<int64_t> integer = nullptr;
  ScalarLoop<uint64_t> natural = nullptr;

  template <typename C>
  ScalarLoop<C> get() const {
    if constexpr (std::is_same_v<C, double>)
      return real;
    else if constexpr (std::is_same_v<C, int64_t>)
      return integer;
    else
      return natural;
  }
};
/// Logical results are 1 and 0. `min`, `max`, `sum` and `mean` (a sum) take two operands here.
ScalarLoops scalar_loops(Scalar function);

}  // namespace dais
