#pragma once

#include <string>

#include "ir/dim.h"
#include "ir/tensor.h"

namespace dais {

inline Dims dims_of(const Shape& shape) { return Dims(shape.begin(), shape.end()); }
inline Dims dims_of(const std::vector<int64_t>& ints) { return Dims(ints.begin(), ints.end()); }

/// Dims that are all numbers (checked), as a Shape.
inline Shape shape_of(const Dims& dims) {
  Shape shape;
  for (const Dim& dim : dims) {
    DAIS_CHECK(dim.is_constant());
    shape.push_back(*dim.constant());
  }
  return shape;
}

/// True when the expression cannot be negative, given that symbols are sizes. False may mean that
/// it is not known.
inline bool never_negative(const Dim& dim) {
  if (dim.is_constant()) return *dim.constant() >= 0;
  return dim.text().find('-') == std::string::npos;
}

/// min and max that also decide between sums of sizes ("past" is never above "past + 1").
inline Dim lesser(const Dim& a, const Dim& b) {
  if (never_negative(b - a)) return a;
  return never_negative(a - b) ? b : min(a, b);
}
inline Dim greater(const Dim& a, const Dim& b) {
  if (never_negative(b - a)) return b;
  return never_negative(a - b) ? a : max(a, b);
}

/// One size known from two sides: the more certain of two, which must be equal when running.
/// `c` is an Inference or a Call.
template <typename Context>
Dim merge_dim(const Context& c, const Dim& a, const Dim& b, const char* what) {
  if (a.is_constant() && b.is_constant() && !(a == b))
    c.fail(std::string(what) + " differ: " + a.text() + " and " + b.text());
  return a.is_constant() ? a : b;
}

/// Axes as a model gives them, counted from 0. Fails when one is out of range or repeated.
template <typename Context>
std::vector<size_t> checked_axes(const Context& c, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<size_t> out;
  std::vector<bool> seen(rank, false);
  for (int64_t axis : axes) {
    const auto limit = static_cast<int64_t>(rank);
    if (axis < -limit || axis >= limit)
      c.fail("axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) +
             " tensor");
    out.push_back(static_cast<size_t>(axis < 0 ? axis + limit : axis));
    if (seen[out.back()]) c.fail("axis " + std::to_string(axis) + " is listed twice");
    seen[out.back()] = true;
  }
  return out;
}

}  // namespace dais
