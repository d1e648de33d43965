#include "cli/compare.h"

#include <cmath>

namespace dais::cli {
namespace {

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

std::string tensor_difference(const Tensor& got, const Tensor& expected,
                              const Tolerance& tolerance) {
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape()))
    return "is " + got.describe() + ", expected " + expected.describe();
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

}  // namespace dais::cli
