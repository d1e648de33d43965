#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace dais::jobs {

/// JSON of strangers, nested so little that code which walks it needs no more of its stack than any
/// other. Throws invalid_argument, naming `what`, for other text.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& what);

/// Sets a number that must be whole and fit; nothing is rounded or cut off. Throws
/// invalid_argument naming the entry.
template <std::integral T>
void set_whole(const nlohmann::ordered_json& json, const std::string& name, T& out) {
  const auto fits = [&] {
    if (json.is_number_unsigned()) return std::in_range<T>(json.template get<uint64_t>());
    return json.is_number_integer() && std::in_range<T>(json.template get<int64_t>());
  };
  if (!fits())
    throw Error(Code::invalid_argument, name + " is no whole number, or too large a one");
  out = json.template get<T>();
}

}  // namespace dais::jobs
