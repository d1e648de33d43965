#include "cli/compare.h"

#include <algorithm>
#include <cmath>

namespace dais::cli {
namespace {

/// With the absolute bound of one tensor.
bool close(double got, double expected, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

template <typename T>
bool agree(const T& got, const T& expected, const Tolerance& tolerance) {
  if constexpr (std::is_same_v<T, std::string> || std::is_integral_v<T>)
    return got == expected;
  else if constexpr (requires { got.real(); })
    return close(got.real(), expected.real(), tolerance) &&
           close(got.imag(), expected.imag(), tolerance);
  else
    return close(number_cast<double>(got), number_cast<double>(expected), tolerance);
}

template <typename T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return '"' + value + '"';
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (requires { value.real(); }) {
    return shown(value.real()) + "+" + shown(value.imag()) + "i";
  } else {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number_cast<double>(value));
    return text;
  }
}

std::string position(const Shape& shape, int64_t element) {
  std::string out = "]";
  for (size_t axis = shape.rank(); axis-- > 0; element /= shape[axis])
    out = (axis ? "," : "") + std::to_string(element % shape[axis]) + out;
  return "[" + out;
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (const double value = std::abs(tensor.to_double(i)); std::isfinite(value))
      largest = std::max(largest, value);
  return largest;
}

std::string tensor_difference(const Tensor& got, const Tensor& expected, Tolerance tolerance) {
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape()))
    return "is " + got.describe() + ", expected " + expected.describe();
  if (tolerance.of_largest > 0 && NumericTypes::contains(expected.dtype()))
    tolerance.absolute += tolerance.of_largest * largest_of(expected);
  std::string out;
  visit_dtype<AllTypes>(got.dtype(), [&]<typename T>() {
    const auto a = got.data<T>(), b = expected.data<T>();
    int64_t wrong = 0, first = 0;
    for (size_t i = 0; i < a.size(); ++i)
      if (!agree(T(a[i]), T(b[i]), tolerance) && wrong++ == 0) first = static_cast<int64_t>(i);
    if (wrong == 0) return;
    const auto at = static_cast<size_t>(first);
    out = "element " + position(got.shape(), first) + " is " + shown(T(a[at])) + ", expected " +
          shown(T(b[at])) + "; " + std::to_string(wrong) + " of " + std::to_string(a.size()) +
          " differ";
  });
  return out;
}

std::string list_difference(const std::vector<Datum>& got, const std::vector<Datum>& expected,
                            const Tolerance& tolerance) {
  if (got.size() != expected.size())
    return "has " + std::to_string(got.size()) + " items, expected " +
           std::to_string(expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto found = first_difference(got[i], expected[i], tolerance);
    if (!found.empty()) return "item " + std::to_string(i) + " " + found;
  }
  return {};
}

const char* kind_name(Datum::Kind kind) {
  switch (kind) {
    case Datum::Kind::none: return "nothing";
    case Datum::Kind::tensor: return "a tensor";
    case Datum::Kind::sequence: return "a sequence";
    case Datum::Kind::map: return "a map";
  }
  return "";
}

}  // namespace

std::string first_difference(const Datum& got, const Datum& expected, const Tolerance& tolerance) {
  if (got.kind != expected.kind)
    return std::string("is ") + kind_name(got.kind) + ", expected " + kind_name(expected.kind);
  if (got.kind == Datum::Kind::none) return {};
  if (got.kind == Datum::Kind::tensor)
    return tensor_difference(got.tensor, expected.tensor, tolerance);
  if (got.kind == Datum::Kind::map) {
    const auto keys = tensor_difference(got.tensor, expected.tensor, tolerance);
    if (!keys.empty()) return "keys: " + keys;
  }
  return list_difference(*got.items, *expected.items, tolerance);
}

bool agree_within_steps(const Tensor& got, const Tensor& expected, double steps) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    low = std::min(low, expected.to_double(i));
    high = std::max(high, expected.to_double(i));
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = got.to_double(i), b = expected.to_double(i);
    // A whole step survives the rounding of its ends.
    if (a != b && !(std::abs(a - b) <= steps * (high - low) / 255 * (1 + 1e-6))) return false;
  }
  return true;
}

bool agree_in_top1(const Tensor& got, const Tensor& expected) {
  const int64_t row = expected.rank() ? expected.shape()[expected.rank() - 1] : 1;
  const auto top = [row](const Tensor& tensor, int64_t first) {
    int64_t best = first;
    for (int64_t i = first; i < first + row; ++i)
      if (tensor.to_double(i) > tensor.to_double(best)) best = i;
    return best;
  };
  for (int64_t first = 0; first < expected.elements(); first += row)
    if (top(got, first) != top(expected, first)) return false;
  return true;
}

Distance distance(const Tensor& tensor, const Tensor& truth) {
  double largest = 0, squares = 0, difference = 0, differences = 0;
  for (int64_t i = 0; i < truth.elements(); ++i) {
    const double right = truth.to_double(i), off = std::abs(tensor.to_double(i) - right);
    if (tensor.to_double(i) == right || !std::isfinite(right)) continue;
    difference = std::isnan(off) ? INFINITY : std::max(difference, off);
    differences += off * off;
  }
  for (int64_t i = 0; i < truth.elements(); ++i) {
    const double right = truth.to_double(i);
    if (!std::isfinite(right)) continue;
    largest = std::max(largest, std::abs(right));
    squares += right * right;
  }
  if (difference == 0) return {};
  return {difference / std::max(largest, 1e-300),
          std::sqrt(differences / std::max(squares, 1e-300))};
}

}  // namespace dais::cli
