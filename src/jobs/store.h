#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace dais::jobs {

/// Where a job stands in its life. Names are those stored.
enum class Phase {
  waiting,
  starting,  ///< decided; its processes may or may not exist yet
  running,
  stopping,  ///< told to end, to wait again or for good
  completed,
  failed,
  cancelled,
};

std::string_view phase_name(Phase phase);
bool ended(Phase phase);
/// The one table of what may follow what.
bool may_follow(Phase from, Phase to);

struct JobRow {
  int64_t id = 0;
  std::string key;   ///< chosen by the submitter; submitting it again gives the same job
  std::string spec;  ///< JSON
  Phase phase = Phase::waiting;
  double submit_s = 0;
  int64_t attempts = 0;
  int64_t failures = 0;
  bool held = false;      ///< waits until somebody lets it go
  double ready_s = 0;     ///< does not start before this moment
  double attained_s = 0;  ///< run time of the attempts that are over
  double start_s = 0;     ///< of the last attempt
  double end_s = 0;
  std::string placement;  ///< of the last attempt: JSON
  std::string outcome;    ///< how it ended, for people
};

struct EventRow {
  int64_t sequence = 0;
  double at_s = 0;
  int64_t job = 0;
  std::string kind;  ///< the phase entered
  std::string detail;
};

struct Transition {
  int64_t job = 0;
  Phase to = Phase::waiting;
  std::string detail;          ///< for people and replay; the outcome of a job that ends
  std::string placement = {};  ///< when it starts
  double ready_s = 0;          ///< when it waits again: not before this moment
  double ran_s = 0;            ///< run time of the attempt that is over
  bool failure = false;        ///< counts as one
};

struct ProjectRow {
  std::string name;
  std::string spec;  ///< JSON
};

/// Somebody who may use the scheduler over the network. Only the hash of the token is kept.
struct TokenRow {
  std::string hash;
  std::string user;
  bool admin = false;
};

/// What one attempt used, booked when it is over. What nobody measured is missing.
struct UsageRow {
  int64_t job = 0, attempt = 0;
  std::string project, user;
  double end_s = 0;
  bool failed = false;
  double held_s = 0, kernel_s = 0, idle_s = 0, unknown_s = 0;  ///< GPU seconds, as in Use
  std::optional<double> moved_bytes, energy_j, cpu_s, read_bytes, written_bytes;
  std::optional<int64_t> gpu_memory_peak_bytes, memory_peak_bytes;
};

/// The sum over attempts that ended in a span of time.
struct UsageSum {
  std::string project;
  int64_t day = 0;  ///< since the begin of the span
  int64_t attempts = 0;
  double held_s = 0, kernel_s = 0, idle_s = 0, unknown_s = 0;
  double failed_s = 0;  ///< held by attempts that failed
  std::optional<double> energy_j = {}, cpu_s = {}, read_bytes = {}, written_bytes = {};
};

/// One value of a device, over the `resolution_s` seconds before `at_s`.
struct MetricRow {
  int64_t resolution_s = 0, at_s = 0;
  int device = 0;
  std::string name;
  double value = 0;
};
/// Values come every 10 s and are kept for a day; means over 10 minutes for 90 days.
inline constexpr int64_t fine_s = 10, coarse_s = 600;

/// All SQL of the scheduler: one SQLite file with write-ahead log and full synchronisation. When a
/// call that changes something returns, the change survives the loss of power; calls that take
/// several changes commit them together. Used by one thread at a time.
///
/// Throws unavailable when the file cannot be used, unsupported when it was written by a newer
/// dais, exhausted when the disk is full.
class Store {
 public:
  /// Opens or makes the file and brings its schema up to date.
  explicit Store(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  struct Submission {
    std::string key;
    std::string spec;
  };
  struct Accepted {
    int64_t job = 0;
    bool fresh = false;  ///< false: its key was known already
  };
  /// In the order of the submissions. A key that is known already gives the id it has. What `then`
  /// makes of them moves on in the same commit.
  std::vector<Accepted> submit(
      const std::vector<Submission>& submissions, double now_s,
      const std::function<std::vector<Transition>(const std::vector<Accepted>&)>& then = {});

  /// Moves jobs on, each with its event, all or none. Throws not_found, or invalid_argument for a
  /// transition that the table does not hold. Entering `starting` counts an attempt.
  /// Space for this is kept back: it goes on for a while on a full disk.
  void move(const std::vector<Transition>& transitions, double now_s);

  std::optional<JobRow> job(int64_t id) const;
  /// Makes jobs wait for release(), or lets them go. Throws not_found.
  void hold(int64_t job, bool held, double now_s);

  /// A text that no other store has, the same for the life of this one.
  std::string identity() const;
  void put_project(const ProjectRow& project, double now_s);
  std::vector<ProjectRow> projects() const;
  void put_token(const TokenRow& token);
  /// Throws not_found when nobody has such a token.
  TokenRow token(const std::string& hash) const;
  /// Who asked for what, and what became of it.
  void audit(double now_s, const std::string& user, const std::string& action,
             const std::string& result);

  /// The newest jobs, or those before an id; ended ones too when `all`.
  std::vector<JobRow> latest(bool all, int64_t before, int most) const;
  std::vector<EventRow> events_of(int64_t job) const;
  /// Jobs that have not ended, oldest first: what a restarted daemon takes up.
  std::vector<JobRow> open_jobs() const;
  std::vector<EventRow> events_after(int64_t sequence, int most) const;

  void add_usage(const UsageRow& row);
  /// Of attempts that ended in [from_s, to_s), by project and day; of all projects when empty.
  std::vector<UsageSum> usage(const std::string& project, double from_s, double to_s) const;
  /// Keeps what a job of a search reported at a step where its jobs are compared.
  void add_rung(const std::string& search, int64_t step, int64_t job, double value);
  /// What all of them reported there.
  std::vector<double> rung(const std::string& search, int64_t step) const;
  /// The last such step of one job; 0 before the first.
  int64_t last_rung(const std::string& search, int64_t job) const;
  /// Keeps values at the fine resolution, makes coarse ones of those before, drops what is too old.
  void add_metrics(const std::vector<MetricRow>& rows, int64_t now_s);
  std::vector<MetricRow> metrics(int device, const std::string& name, int64_t resolution_s,
                                 int64_t from_s, int64_t to_s) const;

  /// True after the disk was found full; submissions are refused until recover() gives true.
  bool degraded() const { return degraded_; }
  /// Tries to take back the reserved space.
  bool recover();

  /// Lets the file grow to so many pages only: a full disk, for tests.
  void limit_pages(int64_t pages);

 private:
  class Statement;
  class Transaction;

  void open_database();
  void execute(const char* sql);
  int64_t version() const;
  /// Moves what the log holds to its place in the file and empties it; false when that failed.
  bool checkpoint();
  JobRow row_of(const Statement& select) const;
  std::vector<JobRow> rows_of(Statement& select) const;
  std::vector<EventRow> events_in(Statement& select) const;
  void update_row(const Transition& transition, double now_s);
  void migrate();
  void insert_event(double now_s, int64_t job, Phase phase, const std::string& detail);
  void move_once(const std::vector<Transition>& transitions, double now_s);
  void move_rows(const std::vector<Transition>& transitions, double now_s);
  void free_ballast();

  std::string path_;
  sqlite3* database_ = nullptr;
  bool degraded_ = false;
  int64_t page_limit_ = 0;
};

}  // namespace dais::jobs
