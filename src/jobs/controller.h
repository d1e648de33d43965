#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "devices/watch.h"
#include "jobs/activity.h"
#include "jobs/artefacts.h"
#include "jobs/executor.h"
#include "jobs/journal.h"
#include "jobs/meter.h"
#include "jobs/quarantine.h"
#include "jobs/search.h"
#include "jobs/slurm_executor.h"
#include "jobs/store.h"

namespace dais::jobs {

/// A project as people set it. Amounts as in a job file; missing ones are not governed.
struct ProjectRequest {
  std::string name;
  std::string parent;  ///< empty: none
  Resources quota{0, 0, 0};
  Resources limit{unlimited, unlimited, unlimited};
  double weight = 1;
  std::vector<std::string> members;  ///< users who may submit; empty: everybody
  std::vector<std::string> viewers;  ///< users who may look
};

std::string to_json(const ProjectRequest& project);
ProjectRequest project_from_json(const std::string& text);

/// What people see of a job.
struct JobView {
  JobRow row;
  JobRequest request;
  Placement placement;  ///< of the attempt that runs
  /// What keeps it to its GPUs: "hardware", "driver", "runtime" or "none".
  std::string wall = "none";
};

/// The heart of the daemon: keeps the store, the snapshot that decisions are made on and the
/// processes in step. Intent is stored before any effect, so that another controller can take up
/// after a kill at any moment. Used by one thread.
class Controller {
 public:
  struct Options {
    std::filesystem::path folder;
    Host machine;
    Policy policy;
    /// Seconds since 1970 that never go back.
    std::function<double()> clock;
    double log_limit_bytes = 64 << 20;
    std::string nvml = {};  ///< library that measures devices; empty: none is measured
    double idle_alert_s = 600;
    /// Jobs run as who submitted them, who must be a user of this machine; needs root. Otherwise
    /// as the user of the daemon.
    bool own_users = false;
    int64_t processes_per_task = 4096;  ///< an attempt may have so many, threads among them
    /// Jobs run through Slurm, on its nodes.
    std::optional<SlurmExecutor::Options> slurm = {};
    double stuck_alert_s = 1800;  ///< without output, CPU time or a kernel
    ArtefactLimits artefacts = {};
    std::vector<LocalDevice> devices = {};  ///< empty: they go by their numbers
  };

  /// Opens the store and takes up what runs.
  explicit Controller(Options options);
  ~Controller();

  struct Submission {
    std::string key;  ///< empty: any
    JobRequest request;
  };
  /// Ids in order; durable when it returns. All or none.
  /// Throws invalid_argument or not_found listing every problem, exhausted on a full disk.
  std::vector<int64_t> submit(std::vector<Submission> submissions);

  /// Each throws not_found for an unknown job and invalid_argument for one that has ended.
  void cancel(int64_t job, const std::string& by);
  void pause(int64_t job, const std::string& by);    ///< stops it and holds it back
  void resume(int64_t job, const std::string& by);   ///< lets a held one go
  void requeue(int64_t job, const std::string& by);  ///< stops it; it waits again

  void put_project(const ProjectRequest& project);
  std::vector<ProjectRequest> projects() const;
  /// Throws not_found naming the nearest.
  const ProjectRequest& project(const std::string& name) const;

  std::optional<JobView> show(int64_t job) const;
  /// The newest below `before` that are `shown` (null: all), of the newest 50,000.
  std::vector<JobView> list(bool all, int64_t before, int most,
                            const std::function<bool(const JobView&)>& shown = nullptr) const;
  /// One line: what a waiting job waits for.
  std::string why(int64_t job) const;
  const Snapshot& snapshot() const { return snapshot_; }
  const Meter& meter() const { return meter_; }
  devices::Watch::Reading devices() const { return watch_.latest(); }
  const Quarantine& quarantine() const { return quarantine_; }
  /// What somebody should look at now, one line each.
  std::vector<std::string> alerts() const;
  /// What the present attempt of a job used so far; nothing of one that does not run.
  struct Spent {
    std::optional<Use> devices;
    GroupReport groups;
    std::optional<DiskUse> disk;
  };
  std::optional<Spent> spent(int64_t job) const;
  std::vector<int64_t> running() const { return {active_.begin(), active_.end()}; }
  Store& store() { return store_; }
  const Executor& executor() const { return *executor_; }
  const ArtefactKeeper& artefacts() const { return artefacts_; }

  /// Looks at what ended, decides, starts and stops. Returns in how many seconds it must be called
  /// again; infinite when only calls and the ends of processes matter.
  double step();
  /// Descriptors that become readable when a process of a job ends that ran at the last step.
  const std::vector<int>& ends() const { return awaited_; }

 private:
  enum class Afterwards { nothing, wait, hold, cancel, fail };

  struct Entry {
    JobRow row;
    JobRequest request;
    JobId queued = 0;  // its id in the snapshot, 0 when it is not there
    Placement placement;
    int asked_tasks = 1;  // while it has a place, request.tasks says with how many it runs
    double deadline_s = std::numeric_limits<double>::infinity();  // of the grace or time limit
    std::optional<AttemptOutcome> failure;                        // of the task that ended a gang
    bool handed_over = false;                                     // and not seen running yet
    bool cut_short = false;  // an earlier daemon ended while it started this attempt
    int64_t log_read = 0;    // bytes of the first task's log that were searched for reports
    int64_t printed = 0;     // bytes of its logs at the last look
    Afterwards afterwards = Afterwards::nothing;
    std::string stop_reason;
    std::vector<int> watched;         // one descriptor a process
    std::set<int64_t> waits_for_end;  // jobs that must leave its place first
  };
  using Moves = std::vector<Transition>;
  using Names = std::map<JobId, int64_t>;  // jobs by their id in a snapshot

  AttemptName attempt_of(const Entry& entry) const { return {entry.row.id, entry.row.attempts}; }
  Entry& entry(int64_t job);
  void check(const JobRequest& request, std::vector<std::string>& problems) const;
  void move(const Moves& moves);
  void note(const Moves& moves);

  double next_of_jobs();
  double next_of_duties() const;
  void recover();
  void remember_usage();
  void resolve_amounts(JobRequest& request, std::vector<std::string>& problems) const;
  void adopt(Entry& entry);
  static void place(Entry& entry, Placement placement);
  static void unplace(Entry& entry);
  void add_to_snapshot(const ProjectRequest& project);
  Project governed(const ProjectRequest& project) const;
  JobSpec spec_of(const JobRequest& request) const;
  void enqueue(Entry& entry);
  void enqueue_ready();
  bool dependencies_met(Entry& entry);

  void stop_attempt(Entry& entry, Afterwards afterwards, const std::string& reason);
  void end_waiting(Entry& entry, Phase phase, const std::string& reason);
  void look_at_ends();
  void finish(Entry& entry, AttemptOutcome outcome);
  Transition verdict(Entry& entry, const AttemptOutcome& outcome) const;
  void leave_place(Entry& entry, const Transition& transition);
  void notify(const Entry& entry) const;
  JobView view_of(const JobRow& row) const;
  void keep_artefacts(const AttemptName& name, const JobRequest& request) const;
  void mind_artefacts();
  void mind_deadlines();
  void mind_hosts();
  void mind_searches();
  void mind_search(Entry& entry);
  void compare(Entry& entry, const Report& report);
  void mind_patience();
  void mind_quarantine(const std::vector<devices::DeviceSample>& samples);
  std::string closed_devices() const;
  void take_back(HostId host);
  void mind_logs();
  void mind_activity();
  void mind_devices();
  void keep_history(const std::vector<devices::DeviceSample>& samples);
  void book_usage(const Entry& entry, const AttemptOutcome& outcome, const Transition& end);
  void decide_and_apply();
  Moves moves_of(const Decision& decision, const Names& fresh = {}) const;
  Decision foresee(const std::vector<Submission>& submissions,
                   const std::vector<Store::Accepted>& accepted, Names& fresh) const;
  void carry_out(const Decision& decision);
  void wait_for_victims(Entry& entry);
  void launch_ready();
  void launch(Entry& entry);
  void give_up_place(Entry& entry);
  void watch(Entry& entry);
  void unwatch(Entry& entry);

  Options options_;
  double now_s_ = 0;
  Store store_;
  std::unique_ptr<Executor> executor_;
  ArtefactKeeper artefacts_;
  Snapshot snapshot_;
  Journal journal_;  // every change of the snapshot goes through it
  std::map<std::string, std::pair<ProjectId, ProjectRequest>> projects_;
  std::map<int64_t, Entry> open_;  // jobs that have not ended
  Names by_queued_;
  std::set<int64_t> active_;  // those with an attempt
  std::vector<int> awaited_;
  bool changed_ = true;  // since the last decision
  double decided_s_ = 0;
  double artefacts_due_s_ = 0;  // infinite: none are promised
  double logs_due_s_ = 0, activity_due_s_ = 0, searches_minded_s_ = 0;
  devices::Watch watch_;
  Meter meter_;
  Quarantine quarantine_;
  Activity activity_;
  int64_t reading_ = 0;  // the last one that was added up
  int64_t history_s_ = 0;
  double stand_by_s_ = 0;  // when the runner makes ready for the next start
};

}  // namespace dais::jobs
