#pragma once

#include "dais/networks.h"

/// Reading, printing and checking settings by their field list.
namespace dais::nn {

std::string flag_text(int64_t value);
std::string flag_text(double value);
std::string flag_text(bool value);
std::string flag_text(const std::vector<int64_t>& value);
std::string flag_text(const InputSize& value);

/// Each throws `invalid_argument` naming the flag when the text is no such value.
void read_flag(std::string_view name, const std::string& text, int64_t& value);
void read_flag(std::string_view name, const std::string& text, double& value);
void read_flag(std::string_view name, const std::string& text, bool& value);
void read_flag(std::string_view name, const std::string& text, std::vector<int64_t>& value);
void read_flag(std::string_view name, const std::string& text, InputSize& value);

/// Each throws `invalid_argument` naming the flag and its limits.
void check_flag(std::string_view name, double value, double low, double high);
inline void check_flag(std::string_view, bool, double, double) {}
void check_flag(std::string_view name, const std::vector<int64_t>& value, double low, double high);
void check_flag(std::string_view name, const InputSize& value, double low, double high);

/// Calls body(flag) for each of a network's flags.
template <typename Options, typename Body>
void for_each_flag(Body&& body) {
  std::apply([&](const auto&... each) { (body(each), ...); }, Options::flags);
}

template <typename Options>
void check_flags(const Options& options) {
  for_each_flag<Options>([&](const auto& flag) {
    const auto& value = options.*(flag.member);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>)
      check_flag(flag.name, static_cast<double>(value), flag.low, flag.high);
    else
      check_flag(flag.name, value, flag.low, flag.high);
  });
}

/// Throws `invalid_argument` unless the input is an image.
void require_image(const InputSize& input);
/// The same for an image of at least so many pixels a side.
void require_image(const InputSize& input, int64_t smallest);

[[noreturn]] void fail_flag(std::string_view name, const std::string& what,
                            const std::string& remedy);

}  // namespace dais::nn
