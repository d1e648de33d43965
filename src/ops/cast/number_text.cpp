#include <algorithm>
#include <charconv>
#include <cmath>

#include "ops/cast/cast.h"

namespace dais {
namespace {

template <typename T>
std::string shortest(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  char text[64];
  const double magnitude = std::fabs(static_cast<double>(value));
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string out(text, std::to_chars(text, text + sizeof text, value, format).ptr);
  // A whole number keeps a mark of being a float.
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

bool same_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

std::string number_text(float value) { return shortest(value); }
std::string number_text(double value) { return shortest(value); }

std::optional<double> parse_number(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(blanks) + 1 - first);
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  double value = 0;
  if (same_ignoring_case(text, "inf") || same_ignoring_case(text, "infinity")) {
    value = HUGE_VAL;
  } else if (same_ignoring_case(text, "nan")) {
    value = std::nan("");
  } else {
    if (text.empty() || text.front() == '-') return std::nullopt;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) return std::nullopt;
    // Too large or too small for a double: from_chars leaves the value alone.
    if (status == std::errc::result_out_of_range)
      value = std::strtod(std::string(text).c_str(), nullptr);
    else if (status != std::errc{})
      return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace dais
