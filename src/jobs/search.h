#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dais::jobs {

/// What a job says of its progress: a line `dais-report STEP VALUE` among what its first task
/// prints.
struct Report {
  int64_t step = 0;
  double value = 0;
  bool operator==(const Report&) const = default;
};

/// The reports among the whole lines of a text; other lines and broken ones are passed over.
/// `read` is set to where the last whole line ends.
std::vector<Report> reports_in(std::string_view text, size_t& read);

/// Whether a trial stops at a rung (asynchronous successive halving): it does when it is not among
/// the best `1 / factor` of what trials reached there so far, itself among them. As long as fewer
/// than `factor` were there, nobody stops.
bool stops_at_rung(const std::vector<double>& values, double own, double factor, bool larger);

/// The rung after `step`: first, first * factor, first * factor^2 and so on.
int64_t rung_after(int64_t step, int64_t first, double factor);

}  // namespace dais::jobs
