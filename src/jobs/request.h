#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model.h"

namespace dais::jobs {

/// How the jobs of one sweep compete: each reports a value by step, and at growing steps those that
/// are not among the best end (search.h).
struct Search {
  std::string group;       ///< same for all jobs of a submission; set by the daemon
  int64_t first_step = 0;  ///< of the first comparison; 0: none
  double factor = 3;       ///< one in so many goes on; steps grow by it
  bool larger = false;     ///< a larger value is better
  bool operator==(const Search&) const = default;
};

/// What a task asks of one of several devices: a part of it, or so much of its memory, which the
/// daemon makes a part.
struct DevicePart {
  int64_t gpu_milli = 0;
  int64_t gpu_mib = 0;
  bool operator==(const DevicePart&) const = default;
};

/// What a user asks the scheduler to run. Times are in seconds.
struct JobRequest {
  std::string name;
  std::string project = "default";
  std::string user;  ///< set by the daemon from who asks, never from the file
  int priority = 0;  ///< -1000 to 1000; higher goes first

  std::vector<std::string> command;  ///< program and arguments; no shell unless it names one
  std::string folder;                ///< absolute; where the command runs, or what is copied
  bool snapshot = false;             ///< run in a copy of `folder` made when the job is submitted
  std::map<std::string, std::string> environment;

  int tasks = 1;          ///< a gang: all start together or none does
  int min_tasks = 0;      ///< elastic: it may run with so few of them; 0: it is not
  int64_t gpu_milli = 0;  ///< of each task; below 1000 a part of one device
  int64_t gpu_mib = 0;    ///< or that much of one device's memory: gpu_milli is made of it
  /// Or of each of several devices; gpu_milli is the sum, gpu_mib 0. Empty: it is not asked so.
  std::vector<DevicePart> gpu_parts;
  int64_t cpu_milli = 1000;
  int64_t memory_mib = 512;

  bool preemptible = true;
  double grace_s = 30;         ///< between SIGTERM and SIGKILL
  double min_run_s = 0;        ///< 0: the policy's
  double time_limit_s = 0;     ///< over all attempts; 0: none
  int retries = 0;             ///< how often a failed job starts again
  double backoff_s = 5;        ///< before the first retry; doubles each time, up to an hour
  std::vector<int64_t> after;  ///< jobs that must complete first; if one fails, this is cancelled
  Search search;
  std::vector<std::string> artefacts;  ///< patterns of files to keep when it ends (artefacts.h)
  std::vector<std::string> notify;     ///< program run when the job ends: id and phase are added

  bool operator==(const JobRequest&) const = default;
};

/// Reads a job file: YAML, of which JSON is a part. An `array: N` or a `sweep:` gives several
/// requests. `folder` is what a relative `folder:` counts from, and the default.
/// Throws invalid_argument listing every problem with its line, naming near misses of key names.
std::vector<JobRequest> read_job_file(const std::string& text, const std::string& name,
                                      const std::string& folder);

/// The stored form, one JSON object; reading it back gives an equal request.
std::string to_json(const JobRequest& request);
JobRequest request_from_json(std::string_view text);

/// What the scheduler needs to know of the place of so many of its tasks.
Shape shape_of(const JobRequest& request, int tasks);
/// Whether a task leaves part of a device to others.
bool shares_device(const JobRequest& request);

/// Every rule a request must keep, whatever it came from. Empty when all hold.
std::vector<std::string> problems_of(const JobRequest& request);

/// Seconds between a failure, when there were so many before it, and the next attempt.
double backoff_s(const JobRequest& request, int64_t failures);

/// The amounts of a text such as "2", "0.5" (GPUs, CPUs), or "10GiB", "512MiB", "1.5G" (memory).
/// Throw invalid_argument.
int64_t parse_milli(std::string_view text, std::string_view what);
/// "2", "0.5" or "10GiB": sets gpu_milli or gpu_mib; "1,0.5,10GiB": a part of each of so many
/// devices.
void parse_gpus(std::string_view text, std::string_view what, JobRequest& request);
int64_t parse_mib(std::string_view text, std::string_view what);
/// Seconds of "90", "90s", "15m", "2h", "1d" or "1:30:00". Throws invalid_argument.
double parse_seconds(std::string_view text, std::string_view what);

}  // namespace dais::jobs
