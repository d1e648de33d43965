#pragma once

#include <limits>

#include "ir/tensor.h"

namespace dais {

/// The three types in which references compute: double for every float format, signed and unsigned
/// 64-bit integers for integers (results are cut to the element's width when stored, so arithmetic
/// wraps), unsigned also for booleans.
enum class Wide : uint8_t { real, integer, natural };
Wide wide_of(DType dtype);

template <typename C>
inline constexpr Wide wide_type = std::is_same_v<C, double>    ? Wide::real
                                  : std::is_same_v<C, int64_t> ? Wide::integer
                                                               : Wide::natural;

/// Calls body.template operator()<C>() with double, int64_t or uint64_t.
template <typename Body>
void visit_compute(Wide wide, Body&& body) {
  switch (wide) {
    case Wide::real: return body.template operator()<double>();
    case Wide::integer: return body.template operator()<int64_t>();
    case Wide::natural: return body.template operator()<uint64_t>();
  }
}

/// Reads n elements from `first` on, `step` apart (0 repeats one), converted as C++ does. Any
/// numeric or boolean tensor.
template <typename C>
void load_elements(const Tensor& from, int64_t first, int64_t step, int64_t n, C* to);

/// An integer (also of 2 or 4 bits) from a float: fraction dropped, out of range gives the nearest
/// limit, NaN gives 0. The same on every processor, unlike a C cast.
template <typename T>
T saturated(double value) {
  if (value != value) return T{};
  if constexpr (requires { T::max; }) {
    return T(static_cast<int>(value < T::min ? T::min : value > T::max ? T::max : value));
  } else {
    using Limits = std::numeric_limits<T>;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
}

/// Writes n elements from `first` on, `step` apart. Integers wrap to the element's width; floats
/// saturate (see `saturated`), but for types of 2 and 4 bits they wrap too, as ONNX has it;
/// non-zero is true.
template <typename C>
void store_elements(Tensor& to, int64_t first, int64_t step, int64_t n, const C* from);

/// All elements, widened.
template <typename C>
std::vector<C> widen(const Tensor& tensor) {
  std::vector<C> out(static_cast<size_t>(tensor.elements()));
  load_elements(tensor, 0, 1, tensor.elements(), out.data());
  return out;
}

}  // namespace dais
