#include "jobs/placement_text.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "base/error.h"

namespace dais::jobs {

std::string placement_text(const Placement& placement) {
  std::string out;
  for (const Slot& slot : placement) {
    if (!out.empty()) out += ' ';
    out += std::to_string(slot.host) + ":" + std::to_string(slot.device) + ":" +
           std::to_string(slot.task) + ":" + std::to_string(slot.gpu_milli);
  }
  return out;
}

Placement placement_from_text(std::string_view text) {
  Placement out;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](auto& value, char stop) {
    const auto result = std::from_chars(at, end, value);
    const bool stopped = result.ptr == end ? stop == ' ' : *result.ptr == stop;
    if (result.ec != std::errc() || !stopped) {
      throw Error(Code::invalid_argument, "not a placement", std::string(text));
    }
    at = result.ptr + (result.ptr != end);
  };
  while (at != end) {
    Slot slot;
    number(slot.host, ':');
    number(slot.device, ':');
    number(slot.task, ':');
    number(slot.gpu_milli, ' ');
    out.push_back(slot);
  }
  return out;
}

std::string duration_text(double seconds, int digits) {
  std::array<char, 64> text;
  if (seconds < 120) {
    std::snprintf(text.data(), text.size(), "%.*f s", digits, seconds);
  } else if (seconds < 2 * 3600) {
    std::snprintf(text.data(), text.size(), "%.*f min", digits, seconds / 60);
  } else if (seconds < 2 * 86'400) {
    std::snprintf(text.data(), text.size(), "%.1f h", seconds / 3600);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f days", seconds / 86'400);
  }
  return text.data();
}

}  // namespace dais::jobs
