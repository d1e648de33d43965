#include "jobs/search.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace dais::jobs {
namespace {

constexpr std::string_view mark = "dais-report ";

template <typename Number>
bool take(std::string_view& text, Number& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return text.empty() || text.front() == ' ' || text.front() == '\r';
}

}  // namespace

std::vector<Report> reports_in(std::string_view text, size_t& read) {
  std::vector<Report> out;
  read = 0;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', read)) {
    std::string_view line = text.substr(read, end - read);
    read = end + 1;
    if (!line.starts_with(mark)) continue;
    line.remove_prefix(mark.size());
    Report report;
    if (!take(line, report.step) || !take(line, report.value)) continue;
    if (report.step >= 0 && std::isfinite(report.value)) out.push_back(report);
  }
  return out;
}

bool stops_at_rung(const std::vector<double>& values, double own, double factor, bool larger) {
  const auto count = static_cast<double>(values.size());
  if (count < factor) return false;
  const auto better = std::ranges::count_if(
      values, [&](double value) { return larger ? value > own : value < own; });
  return static_cast<double>(better) >= std::ceil(count / factor);
}

int64_t rung_after(int64_t step, int64_t first, double factor) {
  constexpr double never = 9e18;
  double rung = static_cast<double>(first);
  while (rung <= static_cast<double>(step) && rung < never) rung = std::ceil(rung * factor);
  return rung < never ? static_cast<int64_t>(rung) : INT64_MAX;
}

}  // namespace dais::jobs
