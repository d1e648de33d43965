#include "jobs/lifetimes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace dais::jobs {
namespace {

constexpr double first_width_s = 30;
constexpr double width_growth = 1.6;
// A wider group counts as much as this many completions of the narrower one.
constexpr double prior_completions = 5;
// Before anything is known, a job is expected to last this long and as long again as it has lasted.
constexpr double prior_floor_s = 300;

const std::array<double, lifetime_bins + 1>& edges() {
  static const auto table = [] {
    std::array<double, lifetime_bins + 1> edge{};
    double width = first_width_s;
    for (int bin = 0; bin < lifetime_bins; ++bin, width *= width_growth) {
      edge[bin + 1] = edge[bin] + width;
    }
    return edge;
  }();
  return table;
}

uint64_t everyone() { return 0; }
uint64_t group_of(ProjectId project) { return (uint64_t{project} + 1) << 6; }
uint64_t group_of(ProjectId project, int size) {
  return group_of(project) | (static_cast<uint64_t>(size) + 1);
}

}  // namespace

int lifetime_bin(double attained_s) {
  const auto& edge = edges();
  auto above = std::upper_bound(edge.begin() + 1, edge.end() - 1, attained_s);
  return static_cast<int>(above - edge.begin()) - 1;
}

double lifetime_bin_start(int bin) { return edges()[bin]; }

double lifetime_bin_end(int bin) {
  return bin >= lifetime_bins - 1 ? std::numeric_limits<double>::infinity() : edges()[bin + 1];
}

int size_class(const Shape& shape) {
  const int64_t gpu_milli = shape.total().gpu_milli;
  if (gpu_milli == 0) return 0;
  const auto gpus = static_cast<uint64_t>((gpu_milli + whole_gpu - 1) / whole_gpu);
  return std::min(62, 1 + static_cast<int>(std::bit_width(gpus - 1)));
}

template <typename Change>
void Lifetimes::change(ProjectId project, int size, Change&& change) {
  for (uint64_t group : {everyone(), group_of(project), group_of(project, size)}) {
    if (!groups_.contains(group)) groups_.set(group, Counts{});
    change(groups_.edit(group));
  }
}

void Lifetimes::spent(ProjectId project, int size, double from_s, double to_s) {
  if (to_s <= from_s) return;
  change(project, size, [&](Counts& counts) {
    double at = from_s;
    for (int bin = lifetime_bin(from_s); at < to_s; ++bin) {
      const double end = std::min(to_s, lifetime_bin_end(bin));
      counts.seconds[bin] += end - at;
      at = end;
    }
  });
}

void Lifetimes::completed(ProjectId project, int size, double attained_s) {
  const int bin = lifetime_bin(attained_s);
  change(project, size, [bin](Counts& counts) { counts.completions[bin] += 1; });
}

Lifetimes::Hazard Lifetimes::hazard(ProjectId project, int size) const {
  Hazard rate;
  for (int bin = 0; bin < lifetime_bins; ++bin) {
    rate[bin] = 1 / ((edges()[bin] + edges()[bin + 1]) / 2 + prior_floor_s);
  }
  for (uint64_t group : {everyone(), group_of(project), group_of(project, size)}) {
    const Counts* counts = groups_.find(group);
    if (!counts) continue;
    for (int bin = 0; bin < lifetime_bins; ++bin) {
      rate[bin] = (counts->completions[bin] + prior_completions) /
                  (counts->seconds[bin] + prior_completions / rate[bin]);
    }
  }
  return rate;
}

Outlook Lifetimes::outlook(ProjectId project, int size) const {
  const Hazard rate = hazard(project, size);
  Hazard chance, seconds;
  for (int bin = 0; bin < lifetime_bins; ++bin) {
    chance[bin] = -std::expm1(-rate[bin] * (edges()[bin + 1] - edges()[bin]));
    seconds[bin] = chance[bin] / rate[bin];
  }
  Outlook best;
  for (int start = 0; start < lifetime_bins; ++start) {
    double alive = 1, completions = 0, spent = 0, index = 0;
    for (int bin = start; bin < lifetime_bins && alive > 1e-9; ++bin) {
      completions += alive * chance[bin];
      spent += alive * seconds[bin];
      alive *= 1 - chance[bin];
      index = std::max(index, completions / spent);
    }
    best[start] = static_cast<float>(index);
  }
  return best;
}

double Lifetimes::completion_chance(ProjectId project, int size, double attained_s,
                                    double horizon_s) const {
  const Hazard rate = hazard(project, size);
  double at = attained_s, integral = 0;
  const double until = attained_s + horizon_s;
  for (int bin = lifetime_bin(attained_s); at < until; ++bin) {
    const double end = std::min(until, lifetime_bin_end(bin));
    integral += rate[bin] * (end - at);
    at = end;
  }
  return -std::expm1(-integral);
}

}  // namespace dais::jobs
