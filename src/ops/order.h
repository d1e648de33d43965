#pragma once

#include "ir/dtype.h"

namespace dais {

/// A total order of elements of one type: numbers by value with NaN above all, strings by bytes.
template <typename T>
bool ordered_before(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string>) {
    return a < b;
  } else if constexpr (std::is_floating_point_v<T>) {
    return b != b ? a == a : a < b;
  } else if constexpr (requires { a.real(); }) {
    return ordered_before(a.real(), b.real()) ||
           (!ordered_before(b.real(), a.real()) && ordered_before(a.imag(), b.imag()));
  } else {
    return ordered_before(static_cast<float>(a), static_cast<float>(b));
  }
}

}  // namespace dais
