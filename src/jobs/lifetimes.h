#pragma once

#include <array>
#include <cstdint>

#include "jobs/model.h"
#include "jobs/persistent_map.h"

namespace dais::jobs {

inline constexpr int lifetime_bins = 32;

/// The bin of a job that has run `attained_s`; widths grow geometrically.
int lifetime_bin(double attained_s);
double lifetime_bin_start(int bin);
/// Where a bin ends; infinite for the last one.
double lifetime_bin_end(int bin);

/// Jobs of similar size share statistics: 0 for none, else 1 + log2 of the GPUs, rounded up.
int size_class(const Shape& shape);

/// The chance per second that a job of each bin completes soon, at best: the larger, the more
/// completions a second of its time buys.
using Outlook = std::array<float, lifetime_bins>;

/// How long jobs have lasted, learned from those seen so far: completions and time spent per bin,
/// for all jobs, per project, and per project and size. Running and cancelled jobs count with the
/// time they spent, so that nothing is biased towards short jobs.
class Lifetimes {
 public:
  /// A job of `project` and `size` ran from attained `from_s` to `to_s`.
  void spent(ProjectId project, int size, double from_s, double to_s);
  /// It completed after `attained_s`.
  void completed(ProjectId project, int size, double attained_s);

  /// The Gittins index per bin. Sparse statistics are filled up by those of the wider group, and
  /// these by the prior that a job lasts about as long again as it has lasted.
  Outlook outlook(ProjectId project, int size) const;

  /// Chance that a job which ran `attained_s` completes within another `horizon_s`.
  double completion_chance(ProjectId project, int size, double attained_s, double horizon_s) const;

 private:
  struct Counts {
    std::array<double, lifetime_bins> completions{};
    std::array<double, lifetime_bins> seconds{};
  };
  using Hazard = std::array<double, lifetime_bins>;

  template <typename Change>
  void change(ProjectId project, int size, Change&& change);
  Hazard hazard(ProjectId project, int size) const;

  PersistentMap<Counts> groups_;
};

}  // namespace dais::jobs
