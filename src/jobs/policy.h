#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dais::jobs {

/// How jobs are ordered. Quotas, limits and gangs hold under each of them.
enum class Ordering {
  fifo,      ///< strictly by arrival: the first that does not fit holds up the others
  priority,  ///< by priority, then arrival; a higher priority takes from lower ones
  fair,      ///< the project with the smallest dominant share first (DRF)
  las,       ///< least attained service: two queues split at a threshold, arrival within
  standard,  ///< priority, seniority for part of the machine, then expected completions per GPU
};

/// How to decide. All defaults are those of `standard`.
struct Policy {
  Ordering ordering = Ordering::standard;

  /// A waiting job must promise this many times the completions per GPU second of a running one
  /// to take its place: a resume costs time.
  double preempt_gain = 1.5;
  /// A job is not preempted before it ran this long, unless its specification says otherwise.
  double min_run_s = 60;
  /// With nobody waiting, an elastic job that ran this long starts again with what is free besides,
  /// unless its specification has a minimum run time.
  double grow_after_s = 600;
  /// `las`: GPU seconds after which a job goes to the second queue.
  double las_threshold_gpu_s = 18'000;

  /// Seniority keeps long jobs alive: those that have waited `tenure_wait_s` in all may become
  /// tenured, oldest first. The part of the machine that tenured jobs may hold for one of them to
  /// join grows with the time it waited, up to `tenure_share` at `tenure_full_wait_s`: the longer
  /// the queue, the more goes by age. A tenured job yields to priorities and quotas only.
  double tenure_wait_s = 86'400;
  double tenure_full_wait_s = 8 * 86'400;
  double tenure_share = 0.8;

  /// Projects that used less than their share lately count for more: the ratio to this power,
  /// at most `fairness_span` either way. Use decays with the half-life.
  double fairness_power = 0.5;
  double fairness_span = 4;
  double half_life_s = 7 * 86'400;

  /// Bounds on the work of one decision: jobs it starts, jobs it looks at as victims in all and for
  /// one claim, of these the protected ones it passes over, and after how many looks in vain it
  /// stops looking. A decision that was cut short after it did something says so.
  int max_starts = 16;
  int max_looks = 128;
  int max_victims = 256;
  int max_spared = 128;
  int max_wasted = 64;
};

/// The policy of a name: fifo, priority, fair, las or default.
/// Throws invalid_argument for any other, naming the nearest.
Policy policy_named(std::string_view name);
std::string_view ordering_name(Ordering ordering);
std::vector<std::string> policy_names();

}  // namespace dais::jobs
