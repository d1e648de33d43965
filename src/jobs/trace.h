#pragma once

#include <string>
#include <vector>

namespace dais::jobs {

/// One job of a recorded trace.
struct TraceJob {
  double submit_s = 0;
  double duration_s = 0;
  int gpus = 1;
  std::string project;
};

/// Reads a CSV file (gzip-compressed or not) whose header names at least submit_time, duration and
/// num_gpus; vc or project names the project. Lines without GPUs are left out; the rest is ordered
/// by time. Throws not_found, or invalid_argument with the line number.
std::vector<TraceJob> read_trace(const std::string& path);

}  // namespace dais::jobs
