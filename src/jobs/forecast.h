#pragma once

#include <optional>

#include "jobs/snapshot.h"

namespace dais::jobs {

/// Seconds that a running job is likely to last from now on: half of such jobs last longer. Never
/// beyond its time limit.
double likely_remaining_s(const Snapshot& snapshot, const Job& job);

/// Seconds until a waiting job may be expected to find its place: the jobs that run leave one after
/// the other as likely_remaining_s() says, and what waits ahead of it (higher priorities, and older
/// jobs of its own) takes its room first. Nothing when no end of running jobs would make room.
/// A forecast: it knows no preemptions and no jobs yet to come.
std::optional<double> expected_wait_s(const Snapshot& snapshot, JobId id);

}  // namespace dais::jobs
