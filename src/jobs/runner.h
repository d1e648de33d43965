#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jobs/executor.h"
#include "jobs/standby.h"

namespace dais::jobs {

/// Runs attempts on this machine, each task under a shim of its own.
class Runner : public Executor {
 public:
  /// With `own_users`, jobs run as who submitted them, each attempt with a /tmp of its own unless
  /// its folder lies in that of all.
  explicit Runner(std::filesystem::path folder, bool own_users = false,
                  int64_t processes_per_task = 4096, std::vector<LocalDevice> devices = {});
  ~Runner() override;

  std::string wall(const JobRequest& request, const Placement& placement) const override;
  void know_memory(const std::map<int, int64_t>& mib) override { memory_mib_ = mib; }
  std::vector<std::string> walls() const override;
  std::vector<std::string> walls_missing() const override;

  /// Forks a few processes that join empty control groups, and removes groups that are over.
  void stand_by() override;
  double stand_by_in_s() const override;
  void start(const AttemptName& name, const JobRequest& request,
             const Placement& placement) override;
  AttemptOutcome inspect(const AttemptName& name, int tasks) const override;
  std::optional<double> age_s(const AttemptName& name, int tasks) const override;
  GroupReport groups(const AttemptName& name) const override;
  std::optional<DiskUse> disk(const AttemptName& name, int tasks) const override;
  std::vector<ProcessId> processes(const AttemptName& name, int tasks) const override;
  std::vector<int> members(const AttemptName& name) const override;
  void signal(const AttemptName& name, int tasks, int signal) override;
  void kill(const AttemptName& name, int tasks) override;
  void clean_up(const AttemptName& name) override;
  /// Removes the control groups that a killed daemon left of other attempts.
  void all_adopted(const std::vector<AttemptName>& active) override;

 private:
  struct Ready {
    std::string groups;  // their name until they are an attempt's
    Standby standby;
  };
  std::filesystem::path tmp_folder(const AttemptName& name) const;
  std::string mps_folder(const JobRequest& request) const;
  std::string device_wall(const Placement& placement) const;
  std::filesystem::path task_folder(const AttemptName& name, int task) const;
  std::optional<Ready> take_ready(const AttemptName& name, const GroupLimits& limits);
  Launch launch_of(const AttemptName& name, const JobRequest& request, const Placement& placement,
                   int task, int port) const;

  bool own_users_;
  bool own_tmp_;
  int64_t processes_per_task_;
  std::vector<LocalDevice> devices_;   // empty: they go by their numbers
  std::map<int, int64_t> memory_mib_;  // of devices
  ControlGroups groups_;
  std::deque<Ready> ready_;
  std::vector<std::string> over_;  // names of groups to be removed
  int next_ready_ = 0;
};

/// The full path of a program found through PATH, as a shell would. Throws not_found.
std::string resolve_program(const std::string& program, const std::string& path);

}  // namespace dais::jobs
