#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/control_group.h"
#include "jobs/request.h"
#include "jobs/shim.h"

namespace dais::jobs {

/// One attempt of a job: the folder of everything it leaves behind is named after it.
struct AttemptName {
  int64_t job = 0;
  int64_t number = 0;
  bool operator==(const AttemptName&) const = default;
};

/// How an attempt stands, over all its tasks.
struct AttemptOutcome {
  AttemptState state = AttemptState::absent;  ///< running while any task runs
  int exit_code = 0;                          ///< of the first task that failed
  int signal = 0;
  int failed_task = -1;
  GroupReport groups;
  bool succeeded() const { return state == AttemptState::ended && failed_task < 0; }
};

/// Turns decisions into processes on this machine. Everything it does can be read back from the
/// data folder, so that a new daemon takes up where a killed one was. Used by one thread.
class Runner {
 public:
  /// `folder` is the daemon's data folder. With `own_users`, jobs run as who submitted them.
  explicit Runner(std::filesystem::path folder, bool own_users = false);
  ~Runner();

  /// Copies the working folder of a job that asked for it. Called before it is acknowledged.
  void prepare(const std::string& key, const JobRequest& request) const;
  /// Gives the copy its final name, once the job has an id.
  void keep(const std::string& key, int64_t job) const;

  /// Makes ready what the next start needs, where that saves time: a few processes that have joined
  /// empty control groups. To be called when nothing else is to be done.
  void stand_by();
  /// Starts every task of an attempt, or none: when one cannot be started those before it are
  /// killed and the error is thrown.
  void start(const AttemptName& name, const JobRequest& request, const Placement& placement);
  /// Reads the state back; `tasks` as in the request.
  AttemptOutcome inspect(const AttemptName& name, int tasks) const;
  /// The first processes of the tasks that run.
  std::vector<ProcessId> processes(const AttemptName& name, int tasks) const;
  /// Everything that runs in its control groups.
  std::vector<int> members(const AttemptName& name) const;
  void signal(const AttemptName& name, int tasks, int signal) const;
  /// Kills everything the attempt started.
  void kill(const AttemptName& name, int tasks) const;
  /// Removes its control groups; logs and outputs stay.
  void clean_up(const AttemptName& name) const;

  std::filesystem::path log(const AttemptName& name, int task) const;
  const ControlGroups& groups() const { return groups_; }

 private:
  std::filesystem::path attempt_folder(const AttemptName& name) const;
  std::filesystem::path task_folder(const AttemptName& name, int task) const;
  std::filesystem::path incoming(const std::string& key) const;
  std::filesystem::path copy_of(int64_t job) const;
  struct Ready {
    std::string groups;  // their name until they are an attempt's
    Standby standby;
  };
  std::optional<Ready> take_ready(const AttemptName& name, const GroupLimits& limits);
  Launch launch_of(const AttemptName& name, const JobRequest& request, const Placement& placement,
                   int task, int port) const;

  std::filesystem::path folder_;
  bool own_users_;
  ControlGroups groups_;
  std::deque<Ready> ready_;
  int next_ready_ = 0;
};

/// The variables every rank finds, besides those of the request: PATH, HOME, RANK, WORLD_SIZE,
/// LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TF_CONFIG, CUDA_VISIBLE_DEVICES, DAIS_JOB_ID,
/// DAIS_ATTEMPT.
std::vector<std::string> rank_environment(const AttemptName& name, const JobRequest& request,
                                          const Placement& placement, int task, int port);

/// The full path of a program found through PATH, as a shell would. Throws not_found.
std::string resolve_program(const std::string& program, const std::string& path);

}  // namespace dais::jobs
