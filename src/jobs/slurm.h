#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace dais::jobs {

/// A node as Slurm describes it.
struct SlurmNode {
  std::string name;
  std::string address;
  int gpus = 0;
  int64_t cpus = 0;
  int64_t memory_mib = 0;
  bool up = false;  ///< it takes jobs

  bool operator==(const SlurmNode&) const = default;
};

/// Lines of `sinfo -h -N -o "%N|%o|%c|%m|%G|%T"`; a node of several partitions comes once.
std::vector<SlurmNode> parse_nodes(const std::string& lines);

struct SlurmJob {
  std::string id;
  std::string state;  ///< such as PENDING
  /// A node could not start it, and Slurm holds it back for that: nothing of it was executed there.
  bool launch_failed = false;

  /// It is over, however it ended.
  bool over() const;
  bool operator==(const SlurmJob&) const = default;
};

/// Lines of `squeue -h -t all -o "%i|%T|%r|%k"`: jobs by comment. Where several have the same, one
/// that is not over.
std::map<std::string, SlurmJob> parse_jobs(const std::string& lines);

/// Speaks to Slurm through its programs, on a thread of its own, for they may hang while its
/// controller is away. A job is known by the UUID in its comment alone: ids are given anew after a
/// crash of the controller. A job that is kept and that Slurm does not know is submitted, and
/// submitted again when it vanished before it began; one of ours that Slurm has and that is not
/// kept is cancelled, for after a crash its controller may believe that jobs run which are over.
/// Safe to use from any thread.
class Slurm {
 public:
  /// `partition` may be empty: Slurm's default. The UUIDs of all our jobs begin with `prefix`.
  Slurm(std::string partition, std::string prefix);
  ~Slurm();
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  /// Asks at once. Throws unavailable when Slurm does not answer.
  std::vector<SlurmNode> nodes() const;

  struct Order {
    std::vector<std::string> arguments;  ///< of sbatch, the script last
    std::map<std::string, std::string> environment;
    /// A file that is not empty as soon as the job has begun: it is not submitted again then.
    std::string begun;
  };
  /// Keeps a job in Slurm's hands until forget().
  void keep(const std::string& uuid, Order order);
  void forget(const std::string& uuid);
  /// All jobs that are to be kept are: from now on others of ours are strays.
  void cancel_strays();
  /// Sends a signal to what the job runs; SIGKILL, and any signal before it began, cancels it.
  void signal(const std::string& uuid, int signal);

  /// What `begun` of an order tells.
  static bool has_begun(const std::string& file);

  struct View {
    bool reached = false;  ///< Slurm answered since the job was kept and its last signal was given
    bool cancelled = false;
    std::optional<SlurmJob> job;  ///< by its last answer
    std::string refusal;          ///< what sbatch said when it would not have it
  };
  View view(const std::string& uuid) const;
  /// By the last answer; empty before there was one.
  std::vector<SlurmNode> latest_nodes() const;
  bool reachable() const;

 private:
  struct Kept {
    Order order;
    std::vector<int> signals;  // to be sent
    View view;
  };
  struct Output;

  void work();
  void round();
  void look(bool& answered);
  void submit_missing();
  void send_signals();
  void end_strays();
  static Output call(const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment = {});
  std::vector<std::string> with_partition(std::vector<std::string> command) const;

  std::string partition_, prefix_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Kept> kept_;
  std::vector<SlurmNode> nodes_;
  bool reachable_ = true;
  bool strays_end_ = false;
  std::vector<std::string> strays_;  // ids in Slurm
  bool hurry_ = false, stopping_ = false;
  std::thread worker_;
};

}  // namespace dais::jobs
