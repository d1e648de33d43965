#pragma once

#include <optional>
#include <vector>

#include "jobs/policy.h"
#include "jobs/snapshot.h"
#include "jobs/victims.h"

namespace dais::jobs {

/// Preemptible jobs that make room for a gang by going on elsewhere: enough is free for it, only
/// scattered.
struct Consolidation {
  std::vector<JobId> moved;
  Placement placement;  ///< of the gang
};

/// The moves that disturb least, if every job moved finds another place in what is free then, none
/// of them ranks above the claim, and together they hold no more GPUs than it asks for. Not for
/// large machines: it looks at all running jobs.
std::optional<Consolidation> consolidate(const Snapshot& now, const Policy& policy,
                                         const Claim& claim);

}  // namespace dais::jobs
