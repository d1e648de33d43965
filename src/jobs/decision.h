#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/snapshot.h"

namespace dais::jobs {

struct Start {
  JobId job = 0;
  Placement placement;
  Standing standing = Standing::normal;

  bool operator==(const Start&) const = default;
};

struct Preemption {
  JobId victim = 0;
  JobId beneficiary = 0;  ///< the victim itself: an elastic job that goes on with more tasks

  bool operator==(const Preemption&) const = default;
};

/// What to do now. Preemptions come first: the places of the starts count on them.
struct Decision {
  std::vector<JobId> promote;  ///< running jobs that become tenured
  std::vector<Preemption> preempt;
  std::vector<Start> start;
  bool more = false;  ///< its bounds on work cut it short: apply it and decide again

  bool operator==(const Decision&) const = default;
  bool empty() const { return promote.empty() && preempt.empty() && start.empty(); }
};

/// Pure: no clock, no I/O. The policy's ordering must be the one the snapshot was made for.
Decision decide(const Snapshot& snapshot, const Policy& policy);

/// Books a decision made on this very snapshot. Victims are left `stopping`.
void apply(Snapshot& snapshot, const Decision& decision);

/// Why a waiting job does not start.
enum class Refusal {
  none,        ///< it would start now
  not_tried,   ///< others go first
  limit,       ///< its project, or one above it, would exceed its limit
  quota,       ///< a job that cannot be preempted needs free quota
  room,        ///< not enough is free, nor held by jobs that must yield to it
  reserved,    ///< it would delay an older job and could not be stopped for it
  impossible,  ///< no hosts could ever hold it
};

struct Reason {
  Refusal refusal = Refusal::none;
  std::string text;                            ///< one line for people
  std::optional<double> expected_wait_s = {};  ///< until it may be expected to start; forecast.h
};

/// What a job waits for, found by deciding again while watching that job.
/// Throws not_found for a job that is not waiting.
Reason why(const Snapshot& snapshot, const Policy& policy, JobId id);

}  // namespace dais::jobs
