#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/control_group.h"
#include "jobs/machine.h"
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
  GroupReport groups = {};
  std::optional<DiskUse> disk = {};
  std::string note = {};   ///< why it failed, where exit code and signal do not say it
  bool blameless = false;  ///< it was lost without fault of its own: it starts again
  bool succeeded() const { return state == AttemptState::ended && failed_task < 0; }
};

/// Turns decisions into processes, on this machine or through somebody who has many. Everything it
/// does can be read back from the data folder, so that a new daemon takes up where a killed one
/// was. Used by one thread.
class Executor {
 public:
  /// `folder` is the daemon's data folder.
  explicit Executor(std::filesystem::path folder);
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Copies the working folder of a job that asked for it, with the rights of its owner and for
  /// him. Called before it is acknowledged.
  void prepare(const std::string& key, const JobRequest& request,
               const std::optional<Account>& owner) const;
  /// Gives the copy its final name, once the job has an id.
  void keep(const std::string& key, int64_t job) const;
  std::filesystem::path log(const AttemptName& name, int task) const;
  /// Where the job runs.
  std::string work_folder(const AttemptName& name, const JobRequest& request) const;

  /// The hosts that placements count, in order, given the machine of the daemon.
  virtual std::vector<Host> hosts(const Host& machine) const { return {machine}; }
  /// Whether each of them takes new jobs now; empty: all do.
  virtual std::vector<bool> open_hosts() const { return {}; }
  /// What it cannot do of a request; one line each.
  virtual std::vector<std::string> problems(const JobRequest&) const { return {}; }
  /// What keeps such a job to its GPUs, at a place of its or, with none, at any: "hardware",
  /// "driver", "runtime" or "none".
  virtual std::string wall(const JobRequest&, const Placement&) const { return "none"; }
  /// How much memory devices have, by what measures them.
  virtual void know_memory(const std::map<int, int64_t>&) {}
  virtual std::vector<std::string> walls() const { return {}; }
  virtual std::vector<std::string> walls_missing() const { return {}; }

  /// Makes ready what the next start needs and clears away what is over, where that saves time. To
  /// be called when nothing else is to be done, so many seconds after the last start or end.
  virtual void stand_by() {}
  virtual double stand_by_in_s() const { return std::numeric_limits<double>::infinity(); }
  /// Starts every task of an attempt, or none: when one cannot be started those before it are
  /// killed and the error is thrown. An executor that hands over begins to care for the attempt,
  /// whether or not it was handed over before; inspect() says when it runs.
  virtual void start(const AttemptName& name, const JobRequest& request,
                     const Placement& placement) = 0;
  /// Attempts are started by somebody else, later.
  virtual bool hands_over() const { return false; }
  /// Reads the state back; `tasks` as in the request.
  virtual AttemptOutcome inspect(const AttemptName& name, int tasks) const = 0;
  /// How often attempts must be looked at; infinite where the ends of their processes are seen.
  virtual double look_every_s() const { return std::numeric_limits<double>::infinity(); }
  /// How long what was handed over may wait to begin before it is taken back; infinite: for ever.
  virtual double patience_s() const { return std::numeric_limits<double>::infinity(); }
  /// Gives the hosts of a placement no jobs for a while: what was handed over for them did not
  /// begin.
  virtual void leave_alone(const Placement&) {}
  /// How long ago the attempt began, by a clock that nobody sets; nothing when it is not known.
  virtual std::optional<double> age_s(const AttemptName&, int) const { return std::nullopt; }
  /// What it used so far.
  virtual GroupReport groups(const AttemptName&) const { return {}; }
  virtual std::optional<DiskUse> disk(const AttemptName&, int) const { return std::nullopt; }
  /// The first processes of the tasks that run here.
  virtual std::vector<ProcessId> processes(const AttemptName&, int) const { return {}; }
  /// Everything here that belongs to the attempt.
  virtual std::vector<int> members(const AttemptName&) const { return {}; }
  virtual void signal(const AttemptName& name, int tasks, int signal) = 0;
  /// Kills everything the attempt started.
  virtual void kill(const AttemptName& name, int tasks) = 0;
  /// Forgets an attempt that is over; logs and outputs stay.
  virtual void clean_up(const AttemptName& name) = 0;
  /// These attempts of before were taken up: what else it has may be ended.
  virtual void all_adopted(const std::vector<AttemptName>&) {}

 protected:
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path attempt_folder(const AttemptName& name) const;
  /// Lets others pass through a folder of the data folder, and those above it.
  void open_way(const std::filesystem::path& to) const;

 private:
  std::filesystem::path incoming(const std::string& key) const;
  std::filesystem::path copy_of(int64_t job) const;

  std::filesystem::path folder_;
};

/// PATH of jobs that bring none.
inline constexpr const char* default_path =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The variables every rank finds, besides those of the request: PATH, HOME, RANK, WORLD_SIZE,
/// LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TF_CONFIG, CUDA_VISIBLE_DEVICES, DAIS_JOB_ID,
/// DAIS_ATTEMPT; with part of a device CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and DAIS_GPU_MEMORY.
/// `devices` are the names of the host's devices where they do not go by their numbers.
std::vector<std::string> rank_environment(const AttemptName& name, const JobRequest& request,
                                          const Placement& placement, int task, int port,
                                          const std::vector<LocalDevice>& devices = {});

/// The value of TF_CONFIG: workers by address, and which of them a task is.
std::string tf_config(const std::vector<std::string>& addresses, int port, int task);

}  // namespace dais::jobs
