#include <charconv>
#include <cmath>

#include "base/error.h"
#include "jobs/request.h"

namespace dais::jobs {
namespace {

[[noreturn]] void malformed(std::string_view text, std::string_view what,
                            const std::string& remedy) {
  throw Error(Code::invalid_argument,
              std::string(what) + ": '" + std::string(text) + "' is not an amount", {}, remedy);
}

// Reads the number in front; what follows is left in `text`.
double number_of(std::string_view& text, std::string_view what, const std::string& remedy) {
  const std::string_view whole = text;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value) || value < 0 || value > 1e12) {
    malformed(whole, what, remedy);
  }
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return value;
}

double clock_seconds(std::string_view text, std::string_view what) {
  const std::string remedy = "Use seconds, or forms such as 90s, 15m, 2h, 1d, 1:30:00";
  const std::string_view whole = text;
  double seconds = 0;
  for (int part = 0;; ++part) {
    seconds = seconds * 60 + number_of(text, what, remedy);
    if (text.empty()) return seconds;
    if (text.front() != ':' || part == 2) malformed(whole, what, remedy);
    text.remove_prefix(1);
  }
}

}  // namespace

int64_t parse_milli(std::string_view text, std::string_view what) {
  const std::string remedy = "Use a number such as 2 or 0.5";
  std::string_view rest = text;
  const double value = number_of(rest, what, remedy);
  if (!rest.empty()) malformed(text, what, remedy);
  return std::llround(value * 1000);
}

int64_t parse_mib(std::string_view text, std::string_view what) {
  const std::string remedy = "Use an amount such as 512MiB, 10GiB or 1TiB";
  std::string_view rest = text;
  const double value = number_of(rest, what, remedy);
  struct Unit {
    std::string_view name;
    double mib;
  };
  static constexpr Unit units[] = {{"MiB", 1},          {"M", 1},           {"GiB", 1024},
                                   {"G", 1024},         {"TiB", 1 << 20},   {"T", 1 << 20},
                                   {"MB", 0.953674316}, {"GB", 953.674316}, {"", 1}};
  for (const Unit& unit : units) {
    if (rest == unit.name) return std::llround(std::ceil(value * unit.mib));
  }
  malformed(text, what, remedy);
}

double parse_seconds(std::string_view text, std::string_view what) {
  if (text.find(':') != std::string_view::npos) return clock_seconds(text, what);
  const std::string remedy = "Use seconds, or forms such as 90s, 15m, 2h, 1d, 1:30:00";
  std::string_view rest = text;
  const double value = number_of(rest, what, remedy);
  if (rest.empty() || rest == "s") return value;
  if (rest == "ms") return value / 1000;
  if (rest == "m" || rest == "min") return value * 60;
  if (rest == "h") return value * 3600;
  if (rest == "d") return value * 86'400;
  malformed(text, what, remedy);
}

void parse_gpus(std::string_view text, std::string_view what, JobRequest& request) {
  const auto amount = [what](std::string_view one) {
    const bool bytes = one.find_first_of("kKmMgGtT") != std::string_view::npos;
    return bytes ? DevicePart{0, parse_mib(one, what)} : DevicePart{parse_milli(one, what), 0};
  };
  request.gpu_parts.clear();
  if (text.find(',') == std::string_view::npos) {
    const DevicePart all = amount(text);
    request.gpu_milli = all.gpu_milli;
    request.gpu_mib = all.gpu_mib;
    return;
  }
  request.gpu_milli = request.gpu_mib = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    request.gpu_parts.push_back(amount(text.substr(at, end - at)));
    request.gpu_milli += request.gpu_parts.back().gpu_milli;
    at = end + 1;
  }
}

}  // namespace dais::jobs
