#include "nn/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace dais::nn {
namespace {

std::string joined(const std::vector<int64_t>& values, char separator) {
  std::string out;
  for (const int64_t value : values) {
    if (!out.empty()) out += separator;
    out += std::to_string(value);
  }
  return out;
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_list(std::string_view text, char separator, std::vector<int64_t>& values) {
  values.clear();
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    int64_t value = 0;
    if (!read_number(text.substr(0, end), value)) return false;
    values.push_back(value);
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void fail_flag(std::string_view name, const std::string& what, const std::string& remedy) {
  throw Error(Code::invalid_argument, what, "--" + std::string(name), remedy);
}

std::string flag_text(int64_t value) { return std::to_string(value); }
std::string flag_text(bool value) { return value ? "true" : "false"; }
std::string flag_text(const std::vector<int64_t>& value) { return joined(value, ','); }
std::string flag_text(const InputSize& value) { return joined(value.sizes, 'x'); }
std::string flag_text(double value) {
  if (value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void read_flag(std::string_view name, const std::string& text, int64_t& value) {
  if (!read_number(text, value))
    fail_flag(name, "'" + text + "' is no whole number", "For example 10");
}

void read_flag(std::string_view name, const std::string& text, double& value) {
  if (!read_number(text, value)) fail_flag(name, "'" + text + "' is no number", "For example 0.5");
}

void read_flag(std::string_view name, const std::string& text, bool& value) {
  if (text != "true" && text != "false")
    fail_flag(name, "'" + text + "' is neither true nor false", "");
  value = text == "true";
}

void read_flag(std::string_view name, const std::string& text, std::vector<int64_t>& value) {
  if (!read_list(text, ',', value))
    fail_flag(name, "'" + text + "' is no list of whole numbers", "For example 512,512");
}

void read_flag(std::string_view name, const std::string& text, InputSize& value) {
  if (!read_list(text, 'x', value.sizes))
    fail_flag(name, "'" + text + "' is no size of an input",
              "Write it as CHANNELSxHEIGHTxWIDTH, for example 3x32x32");
}

void check_flag(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  fail_flag(name, flag_text(value) + " is outside its limits",
            "Give a number from " + flag_text(low) + " to " + flag_text(high));
}

void check_flag(std::string_view name, const std::vector<int64_t>& value, double low, double high) {
  for (const int64_t one : value) check_flag(name, static_cast<double>(one), low, high);
}

void check_flag(std::string_view name, const InputSize& value, double low, double high) {
  if (value.sizes.size() != 3 && value.sizes.size() != 1)
    fail_flag(name, flag_text(value) + " is no size of an input",
              "Write it as CHANNELSxHEIGHTxWIDTH, for example 3x32x32");
  check_flag(name, value.sizes, low, std::min(high, 65536.0));
}

void require_image(const InputSize& input) {
  if (input.sizes.size() != 3)
    fail_flag("input", "this network wants an image, not " + flag_text(input) + " features",
              "Write it as CHANNELSxHEIGHTxWIDTH, for example 3x32x32");
}

void require_image(const InputSize& input, int64_t smallest) {
  require_image(input);
  if (std::min(input.sizes[1], input.sizes[2]) < smallest)
    fail_flag("input",
              "images of " + flag_text(input) + " are too small for what this network halves",
              "Give at least " + std::to_string(smallest) + " pixels a side");
}

}  // namespace dais::nn
