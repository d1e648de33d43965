#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "jobs/executor.h"
#include "jobs/slurm.h"

namespace dais::jobs {

/// Runs attempts through Slurm, on the nodes that the scheduler chose: one Slurm job an attempt,
/// whose comment is a UUID made of the store's identity, the job and the attempt. The data folder
/// and the working folders must be the same on every node.
///
/// Each attempt's folder tells how it stands, whatever Slurm forgot: `begun` is written by the
/// first instance of the batch script and turns every other away, `lock` is held while it runs,
/// `status` is its last act. All its files are made before Slurm hears of it. With `own_users` they
/// belong to who submitted the job, and the folder does not: he can write into them, and put
/// nothing in their place.
class SlurmExecutor : public Executor {
 public:
  struct Options {
    std::string partition;  ///< empty: Slurm's default
    /// What Slurm has not begun after so long is taken back, and its nodes are left alone as long.
    double patience_s = 120;
  };
  /// Throws unavailable when Slurm does not answer.
  SlurmExecutor(std::filesystem::path folder, const Options& options, std::string identity,
                bool own_users = false);

  std::vector<Host> hosts(const Host& machine) const override;
  std::vector<bool> open_hosts() const override;
  std::vector<std::string> problems(const JobRequest& request) const override;
  std::vector<std::string> walls_missing() const override;

  void start(const AttemptName& name, const JobRequest& request,
             const Placement& placement) override;
  bool hands_over() const override { return true; }
  AttemptOutcome inspect(const AttemptName& name, int tasks) const override;
  double look_every_s() const override { return 0.25; }
  double patience_s() const override { return options_.patience_s; }
  void leave_alone(const Placement& placement) override;
  void signal(const AttemptName& name, int tasks, int signal) override;
  void kill(const AttemptName& name, int tasks) override;
  void clean_up(const AttemptName& name) override;
  void all_adopted(const std::vector<AttemptName>&) override { slurm_.cancel_strays(); }

  /// What the comment of its Slurm job says.
  std::string uuid(const AttemptName& name) const;

 private:
  void lay_out(const AttemptName& name, const JobRequest& request,
               const std::optional<Account>& owner, int port,
               const std::vector<HostId>& hosts) const;
  std::string batch_script(const AttemptName& name, const JobRequest& request,
                           const std::optional<Account>& owner, int port) const;
  std::string rank_script(const AttemptName& name, const JobRequest& request,
                          const std::vector<std::string>& addresses, int port) const;

  Options options_;
  std::string identity_;
  bool own_users_;
  std::vector<SlurmNode> nodes_;                                        // in the order of hosts()
  std::map<HostId, std::chrono::steady_clock::time_point> left_alone_;  // until when
  Slurm slurm_;
};

/// The text as one word of a POSIX shell.
std::string shell_word(const std::string& text);

/// What srun said of the first task that failed: its number and exit code.
struct FailedTask {
  int task = 0, exit_code = 0, signal = 0;
};
std::optional<FailedTask> first_failure(const std::string& srun_log);

}  // namespace dais::jobs
