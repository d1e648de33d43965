#pragma once

#include <cstdint>
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
  std::string detail;  ///< for people and replay
};

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
  /// Ids in the order of the submissions. A key that is known already gives the id it has.
  std::vector<int64_t> submit(const std::vector<Submission>& submissions, double now_s);

  /// Moves jobs on, each with its event, all or none. Throws not_found, or invalid_argument for a
  /// transition that the table does not hold. Entering `starting` counts an attempt.
  /// Space for this is kept back: it succeeds once more on a full disk.
  void move(const std::vector<Transition>& transitions, double now_s);

  std::optional<JobRow> job(int64_t id) const;
  /// Jobs that have not ended, oldest first: what a restarted daemon takes up.
  std::vector<JobRow> open_jobs() const;
  std::vector<EventRow> events_after(int64_t sequence, int most) const;

  /// True after the disk was found full; submissions are refused until recover() gives true.
  bool degraded() const { return degraded_; }
  /// Tries to take back the reserved space.
  bool recover();

  /// Lets the file grow to so many pages only: a full disk, for tests.
  void limit_pages(int64_t pages);

 private:
  class Statement;
  class Transaction;

  void execute(const char* sql);
  void migrate();
  void insert_event(double now_s, int64_t job, Phase phase, const std::string& detail);
  void move_once(const std::vector<Transition>& transitions, double now_s);
  void free_ballast();

  std::string path_;
  sqlite3* database_ = nullptr;
  bool degraded_ = false;
  int64_t page_limit_ = 0;
};

}  // namespace dais::jobs
