#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "jobs/decision.h"
#include "jobs/victims.h"

namespace dais::jobs {

/// One run of the decision: works on a copy of the snapshot, so that each choice sees those before
/// it, and notes what it did. With a watched job it also notes why that one was refused.
class Cycle {
 public:
  Cycle(const Snapshot& snapshot, const Policy& policy, JobId watched = 0);

  void run();
  const Decision& decision() const { return decision_; }
  const Reason& watched_reason() const { return reason_; }
  const Snapshot& now() const { return now_; }

 private:
  struct Cursor;

  bool spent() const;
  void pass(bool guaranteed_only);
  void tenure_pass();
  bool aim(Cursor& cursor, bool guaranteed_only) const;
  bool worth_trying(const Cursor& cursor, const FlatIndex::Entry& head, uint16_t shape) const;
  bool no_room_for(uint16_t shape) const;
  bool quota_left(ProjectId id) const;
  bool precedes(const Cursor& a, const Cursor& b) const;
  Refusal attempt(JobId id, double value, Standing standing);
  Refusal admit(const Job& job, const Resources& need) const;
  Shape stretched(const Job& job) const;
  void stretch_starts();
  void grow_one();
  bool place_free(JobId id, Standing standing);
  bool place_by_preempting(const Claim& claim, Standing standing);
  bool place_by_moving(const Claim& claim, Standing standing);
  void displace(JobId victim, JobId beneficiary);
  void promote(JobId id);
  void start(JobId id, Placement placement, Standing standing);
  bool known_to_fail(const Claim& claim) const;
  bool guaranteed(ProjectId id, const Resources& need) const;
  double value_of(ProjectId project, float score) const;
  void note(JobId id, Refusal refusal);
  void note_neighbour(JobId tried, Refusal refusal);
  void weigh_projects();

  Snapshot now_;
  const Policy& policy_;
  JobId watched_;
  Reason reason_{Refusal::not_tried, {}, {}};
  Decision decision_;
  Victims victims_;
  std::vector<double> fairness_;     // by ProjectId
  std::vector<Shape> no_free_room_;  // shapes that did not fit in what is free
  enum class Known : uint8_t { nothing, yes, no };
  mutable std::vector<Known> no_room_;  // what no_free_room_ says by shape
  std::vector<uint16_t> stuck_;         // shapes without room and victims, where nobody can reclaim
  std::vector<Claim> no_victims_;       // claims that could not take a place either
  bool head_blocked_ = false;
  bool moves_sought_ = false;  // once a decision: it looks at all that runs
  // A claim of this rank found nobody that ranks low enough, whatever its size.
  int32_t hopeless_priority_ = std::numeric_limits<int32_t>::min();
  double hopeless_value_ = 0;
  bool held_ = false;  // a guaranteed job waits for minimum run times only: lend nothing more
};

}  // namespace dais::jobs
