#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/policy.h"
#include "jobs/trace.h"

namespace dais::jobs {

struct SimulationOptions {
  int gpus = 512;
  int gpus_per_host = 8;
  int hosts_per_rack = 16;
  Policy policy;
  /// Charged to a job each time it starts again.
  double resume_cost_s = 62;
  /// Decisions are made at multiples of this; 0: at every event.
  double cycle_s = 60;
};

/// One moment of the run, for the timeline.
struct SimulationSample {
  double at_s = 0;
  std::vector<int> running_gpus;  ///< by project
  int64_t waiting_jobs = 0;
};

struct ProjectOutcome {
  std::string name;
  int64_t jobs = 0;
  double mean_completion_s = 0;
  double efficiency = 0;  ///< sum of durations over sum of completion times
};

/// Times are from submission. Queue time is completion time less the duration of the trace, so it
/// holds resume costs. Slowdown is completion time over the duration, taken as at least 10 s.
struct SimulationReport {
  int64_t jobs = 0;
  int64_t skipped = 0;  ///< larger than the machine
  double mean_completion_s = 0, median_completion_s = 0, p99_completion_s = 0;
  double mean_queue_s = 0, median_queue_s = 0, p99_queue_s = 0;
  double median_slowdown = 0, p99_slowdown = 0;
  double makespan_s = 0;
  double utilisation = 0;   ///< GPU time in use, resume costs among it, over GPUs times makespan
  double resume_share = 0;  ///< part of the GPU time in use that went into resumes
  double jain_index = 0;    ///< over the projects' efficiencies
  int64_t preemptions = 0;
  int64_t decisions = 0;
  double decision_mean_us = 0, decision_p99_us = 0;
  std::vector<ProjectOutcome> projects;
  std::vector<SimulationSample> timeline;
};

/// Runs a trace through decide() on a virtual clock. The durations of the trace end the jobs and
/// are never shown to the policy. A job of N GPUs is a gang of N tasks with one GPU each.
SimulationReport simulate(const std::vector<TraceJob>& trace, const SimulationOptions& options);

std::string report_json(const SimulationReport& report);
std::string report_text(const SimulationReport& report);
/// GPUs in use by project and the length of the queue over time.
std::string timeline_svg(const SimulationReport& report, int gpus);

}  // namespace dais::jobs
