#pragma once

#include <optional>
#include <unordered_map>
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

/// A running job may be stopped: it ran for its own minimum time, or for the policy's.
bool ran_long_enough(const Snapshot& now, const Policy& policy, const Job& job);

/// Finds the running jobs that must yield to a claim. The rules:
/// - Between projects, compare the two branches below their closest common ancestor. A branch
///   within its quota yields to nobody; one above it yields to a claim within quota whatever the
///   ranks, down to its quota.
/// - Else a job yields to a higher priority, and at equal priority to a value `preempt_gain` times
///   its own; a backfilled one to any older job; a tenured one to neither.
/// - Nobody yields before the minimum run time.
/// A claim looks at max_victims jobs at most, least valuable first.
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
  /// Jobs looked at so far, and of these the ones in vain.
  int looked() const { return looked_; }
  int wasted() const { return wasted_; }
  /// Forgets what was looked up about a project: to be called after each change of its jobs.
  void invalidate(ProjectId project) {
    if (project < stale_.size()) stale_[project] = true;
  }

 private:
  // The least valuable running job of a project that was not yet looked at. Until it is looked up,
  // a bound no later in the order of victims: most claims are settled by the tails of few projects.
  struct Tail {
    ProjectId project = 0;
    bool exact = false;
    uint64_t group = 0;  // upper part of the keys in ProjectState::tails
    JobId job = 0;
    int32_t priority = 0;
    double value = 0;
    Standing standing = Standing::normal;
  };
  enum class Answer {
    yields,
    spared,  ///< this job does not yield; a higher one of its project may
    done,    ///< no further job of its project yields
    last,    ///< no further job of any project yields
  };
  // What a claim needs to know of a project whose jobs it looks at.
  struct Side {
    bool known = false;
    ProjectId asking = no_project, holding = no_project;
  };
  // Hosts as they would be without the victims so far.
  class Room;

  void prepare(const Snapshot& now);
  void bound(const Snapshot& now, Tail& tail) const;
  bool aim(const Snapshot& now, Tail& tail, uint64_t from) const;
  bool newest_before(const Snapshot& now, Tail& tail, JobId bound) const;
  bool next(const Snapshot& now, Tail& tail) const;
  Answer ask(const Snapshot& now, const Claim& claim, const Tail& tail, const Job& job);
  bool reclaims(const Snapshot& now, const Claim& claim, ProjectId from, bool& shielded);
  void take_from(const Snapshot& now, ProjectId project, const Resources& amount);
  void prune(const Snapshot& now, Capacity& room, const Claim& claim, Choice& choice) const;

  const Policy& policy_;
  const std::vector<double>& fairness_;
  std::vector<Tail> tails_;  // by ProjectId; without a job where nothing runs
  std::vector<Tail> heap_;   // of one claim; kept for its memory
  std::vector<bool> stale_;  // tails_ that must be looked up again
  bool eventually_ = false;
  bool none_yields_ = false;
  int looked_ = 0, wasted_ = 0;
  std::vector<Side> sides_;                         // by ProjectId, for this claim
  std::unordered_map<ProjectId, Resources> taken_;  // by this claim, from a project or below it
};

}  // namespace dais::jobs
