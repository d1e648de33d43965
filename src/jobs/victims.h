#pragma once

#include <optional>
#include <vector>

#include "jobs/policy.h"
#include "jobs/snapshot.h"

namespace dais::jobs {

/// A waiting job that asks for the place of others.
struct Claim {
  JobId job = 0;
  ProjectId project = 0;
  int32_t priority = 0;
  double value = 0;  ///< infinite for a claim by seniority
  Shape shape;
};

/// Finds the running jobs that must yield to a claim. The rules:
/// - Between projects, compare the two branches below their closest common ancestor. A branch
///   within its quota yields to nobody; one above it yields to a claim within quota whatever the
///   ranks, down to its quota.
/// - Else a job yields to a higher priority, and at equal priority to a value `preempt_gain` times
///   its own; a backfilled one to any older job; a tenured one to neither.
/// - Nobody yields before the minimum run time.
class Victims {
 public:
  Victims(const Policy& policy, const std::vector<double>& fairness)
      : policy_(policy), fairness_(fairness) {}

  struct Choice {
    std::vector<JobId> victims;
    Placement placement;
  };
  /// The fewest of the least valuable jobs whose leaving makes room, and the place; or nothing.
  /// With `eventually`, minimum run times are taken as over.
  std::optional<Choice> choose(const Snapshot& now, const Claim& claim, bool eventually = false);

  /// True when the last claim ranked too low for even the least valuable job.
  bool none_yields() const { return none_yields_; }
  /// Jobs looked at in vain so far.
  int wasted() const { return wasted_; }
  /// Forgets what was looked up: to be called after each change of the snapshot.
  void invalidate() { prepared_ = false; }

 private:
  // The least valuable running job of a project that was not yet looked at.
  struct Tail {
    ProjectId project = 0;
    uint64_t group = 0;  // upper part of the keys in ProjectState::tails
    JobId job = 0;
    int32_t priority = 0;
    double value = 0;
    Standing standing = Standing::normal;
  };
  enum class Answer { yields, spared, last };

  void prepare(const Snapshot& now);
  bool aim(const Snapshot& now, Tail& tail, uint64_t from) const;
  bool newest_before(const Snapshot& now, Tail& tail, JobId bound) const;
  bool next(const Snapshot& now, Tail& tail) const;
  Answer ask(const Snapshot& now, const Claim& claim, const Tail& tail) const;
  bool reclaims(const Snapshot& now, const Claim& claim, ProjectId from, bool& shielded) const;
  bool ran_long_enough(const Snapshot& now, const Job& job) const;
  static bool free_up(Capacity& room, const Job& job, const Claim& claim);
  void prune(const Snapshot& now, Capacity& room, const Claim& claim, Choice& choice) const;
  Resources taken_from(ProjectId branch, const Snapshot& now) const;

  const Policy& policy_;
  const std::vector<double>& fairness_;
  std::vector<Tail> tails_;
  bool prepared_ = false;
  bool eventually_ = false;
  bool none_yields_ = false;
  int wasted_ = 0;
  std::vector<std::pair<ProjectId, Resources>> taken_;  // from leaf projects, by this claim
};

}  // namespace dais::jobs
