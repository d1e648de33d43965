#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "jobs/decision.h"

namespace dais::jobs {

/// The events of a snapshot, each passed on and written down: one JSON object a line, the first of
/// them the policy. From an empty snapshot on, the lines give every snapshot that was decided on
/// and what was decided. A journal is for looking back: where it cannot be written it ends, and
/// nothing else does.
class Journal {
 public:
  /// Begins a new file in `folder` and removes the oldest but `journals_kept`.
  Journal(Snapshot& snapshot, const std::filesystem::path& folder, const Policy& policy);
  ~Journal();
  Journal(const Journal&) = delete;

  void advance(double now_s) { snapshot_.advance(now_s); }
  HostId add_host(const Host& host);
  void set_host_open(HostId id, bool open);
  void set_device_open(HostId id, int device, bool open);
  ProjectId add_project(const Project& project);
  void set_project(ProjectId id, const Project& project);
  void add_usage(ProjectId id, double gpu_s);
  JobId submit(std::shared_ptr<const JobSpec> spec);
  void start(JobId id, const Placement& placement, Standing standing);
  void preempt(JobId id);
  void stopped(JobId id);
  void end(JobId id, bool completed);
  /// Decides, and writes down what; the caller applies it or nothing.
  Decision decide(const Policy& policy);
  void apply(const Decision& decision);

  /// True until the file could not be written or grew past `journal_bytes`.
  bool writing() const { return file_ != nullptr; }

 private:
  void line(const std::string& text);

  Snapshot& snapshot_;
  std::FILE* file_ = nullptr;
  int64_t bytes_ = 0;
};

inline constexpr int journals_kept = 4;
inline constexpr int64_t journal_bytes = int64_t{1} << 30;

struct ReplayReport {
  int64_t events = 0, cycles = 0, starts = 0, preemptions = 0;
  int64_t differing = 0;  ///< cycles decided otherwise than the journal says
  int64_t first_line = 0;
  std::string first_difference;
};

/// Plays a journal and decides every cycle again, by the policy it names or another one; what
/// happened then goes on as the journal says. A last line that was cut off is left out.
/// Throws not_found, or invalid_argument naming the line that is no event or cannot follow.
ReplayReport replay(const std::string& path, const std::optional<Policy>& otherwise = {});

/// The newest journal of a data folder. Throws not_found.
std::string latest_journal(const std::filesystem::path& folder);

}  // namespace dais::jobs
