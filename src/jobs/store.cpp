#include "jobs/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "base/span.h"

namespace dais::jobs {
namespace {

// Each entry brings the schema from its index to the next version. Never changed once released.
constexpr std::array migrations = {
    "CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,"
    " spec TEXT NOT NULL, phase TEXT NOT NULL, submit_s REAL NOT NULL,"
    " attempts INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX job_open ON job (id) WHERE phase NOT IN ('completed', 'failed', 'cancelled');"
    "CREATE TABLE event (sequence INTEGER PRIMARY KEY AUTOINCREMENT, at_s REAL NOT NULL,"
    " job INTEGER NOT NULL REFERENCES job (id), kind TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE INDEX event_of_job ON event (job, sequence);",
    "ALTER TABLE job ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN held INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN ready_s REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN attained_s REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN start_s REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN end_s REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN placement TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE job ADD COLUMN outcome TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE project (name TEXT PRIMARY KEY, spec TEXT NOT NULL);"
    "CREATE TABLE token (hash TEXT PRIMARY KEY, user TEXT NOT NULL, admin INTEGER NOT NULL);"
    "CREATE TABLE audit (sequence INTEGER PRIMARY KEY AUTOINCREMENT, at_s REAL NOT NULL,"
    " user TEXT NOT NULL, action TEXT NOT NULL, result TEXT NOT NULL);",
    "CREATE TABLE usage (job INTEGER NOT NULL, attempt INTEGER NOT NULL, project TEXT NOT NULL,"
    " user TEXT NOT NULL, end_s REAL NOT NULL, failed INTEGER NOT NULL, held_s REAL NOT NULL,"
    " kernel_s REAL NOT NULL, idle_s REAL NOT NULL, unknown_s REAL NOT NULL, moved_bytes REAL,"
    " energy_j REAL, cpu_s REAL, gpu_memory_peak_bytes INTEGER, memory_peak_bytes INTEGER,"
    " PRIMARY KEY (job, attempt)) WITHOUT ROWID;"
    "CREATE INDEX usage_end ON usage (end_s);"
    "CREATE TABLE metric (resolution_s INTEGER NOT NULL, device INTEGER NOT NULL,"
    " name TEXT NOT NULL, at_s INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY (resolution_s, device, name, at_s)) WITHOUT ROWID;",
    "CREATE TABLE identity (value TEXT NOT NULL);"
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))));",
    "CREATE TABLE rung (search TEXT NOT NULL, step INTEGER NOT NULL, job INTEGER NOT NULL,"
    " value REAL NOT NULL, PRIMARY KEY (search, step, job)) WITHOUT ROWID;",
    "ALTER TABLE usage ADD COLUMN read_bytes REAL;"
    "ALTER TABLE usage ADD COLUMN written_bytes REAL;",
};

constexpr std::array phases = {Phase::waiting,   Phase::starting, Phase::running,  Phase::stopping,
                               Phase::completed, Phase::failed,   Phase::cancelled};

constexpr off_t ballast_bytes = 1 << 20;
constexpr int64_t ballast_pages = 64;  // for tests, where pages are limited instead of the disk

[[noreturn]] void raise(sqlite3* database, int status, const std::string& path) {
  const std::string what = database ? sqlite3_errmsg(database) : sqlite3_errstr(status);
  if ((status & 0xff) == SQLITE_FULL) {
    throw Error(Code::exhausted, "the job store cannot grow: " + what, path, "Free disk space");
  }
  throw Error(Code::unavailable, "the job store failed: " + what, path,
              "Check the disk, the rights of the folder, and that no other dais uses it");
}

Phase phase_of(std::string_view name, const std::string& path) {
  for (Phase phase : phases) {
    if (phase_name(phase) == name) return phase;
  }
  throw Error(Code::unavailable, "unknown phase '" + std::string(name) + "' in the job store", path,
              "Restore the file from a backup");
}

// The order in which row_of() reads them.
#define DAIS_JOB_COLUMNS                                                                   \
  "SELECT id, key, spec, phase, submit_s, attempts, failures, held, ready_s, attained_s, " \
  "start_s, end_s, placement, outcome FROM job "

std::string ballast_path(const std::string& path) { return path + ".ballast"; }

bool take_ballast(const std::string& path) {
  const int file = open(ballast_path(path).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool taken = posix_fallocate(file, 0, ballast_bytes) == 0;
  close(file);
  if (!taken) unlink(ballast_path(path).c_str());
  return taken;
}

}  // namespace

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::waiting: return "waiting";
    case Phase::starting: return "starting";
    case Phase::running: return "running";
    case Phase::stopping: return "stopping";
    case Phase::completed: return "completed";
    case Phase::failed: return "failed";
    case Phase::cancelled: return "cancelled";
  }
  return "failed";
}

bool ended(Phase phase) {
  return phase == Phase::completed || phase == Phase::failed || phase == Phase::cancelled;
}

bool may_follow(Phase from, Phase to) {
  switch (from) {
    case Phase::waiting: return to == Phase::starting || to == Phase::cancelled;
    case Phase::starting:
      return to == Phase::running || to == Phase::waiting || to == Phase::stopping ||
             to == Phase::failed || to == Phase::cancelled;
    case Phase::running:
      return to == Phase::stopping || to == Phase::completed || to == Phase::failed ||
             to == Phase::waiting;
    case Phase::stopping:
      return to == Phase::stopping || to == Phase::waiting || to == Phase::completed ||
             to == Phase::failed || to == Phase::cancelled;
    case Phase::completed:
    case Phase::failed:
    case Phase::cancelled: return false;
  }
  return false;
}

// A prepared statement; parameters and columns count from where SQLite counts them.
class Store::Statement {
 public:
  Statement(const Store& store, const char* sql) : store_(store) {
    const int status = sqlite3_prepare_v2(store.database_, sql, -1, &statement_, nullptr);
    if (status != SQLITE_OK) raise(store.database_, status, store.path_);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, int64_t value) {
    return bound(sqlite3_bind_int64(statement_, index, value));
  }
  Statement& bind(int index, double value) {
    return bound(sqlite3_bind_double(statement_, index, value));
  }
  template <typename Value>
  Statement& bind(int index, const std::optional<Value>& value) {
    return value ? bind(index, *value) : bound(sqlite3_bind_null(statement_, index));
  }
  Statement& bind(int index, std::string_view value) {
    return bound(sqlite3_bind_text64(statement_, index, value.data(), value.size(),
                                     SQLITE_TRANSIENT, SQLITE_UTF8));
  }

  /// True while there is a row.
  bool step() {
    const int status = sqlite3_step(statement_);
    if (status != SQLITE_ROW && status != SQLITE_DONE)
      raise(store_.database_, status, store_.path_);
    return status == SQLITE_ROW;
  }

  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::optional<double> maybe(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
    return real(column);
  }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return data ? std::string(data, size) : std::string();
  }

 private:
  Statement& bound(int status) {
    if (status != SQLITE_OK) raise(store_.database_, status, store_.path_);
    return *this;
  }

  const Store& store_;
  sqlite3_stmt* statement_ = nullptr;
};

// Rolled back unless committed.
class Store::Transaction {
 public:
  explicit Transaction(Store& store) : store_(store) { store.execute("BEGIN IMMEDIATE"); }
  ~Transaction() {
    // After some errors SQLite has rolled back already.
    if (!committed_ && !sqlite3_get_autocommit(store_.database_)) {
      sqlite3_exec(store_.database_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() {
    const Span span("job", "commit");
    store_.execute("COMMIT");
    committed_ = true;
  }

 private:
  Store& store_;
  bool committed_ = false;
};

Store::Store(const std::string& path) : path_(path) {
  try {
    open_database();
  } catch (const Error& error) {
    // On a full disk even opening needs some of the space kept back.
    if (error.code() == Code::unsupported || unlink(ballast_path(path_).c_str()) != 0) throw;
    open_database();
  }
  // What a killed daemon left in the log goes to its place, so that restarts on a full disk do not
  // let the log grow.
  if (!checkpoint() && unlink(ballast_path(path_).c_str()) == 0) checkpoint();
  degraded_ = !take_ballast(path_);
}

bool Store::checkpoint() {
  return sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                   nullptr) == SQLITE_OK;
}

void Store::open_database() {
  // For this user alone; SQLite gives its other files the same rights.
  const int made = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (made >= 0) close(made);
  try {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int status = sqlite3_open_v2(path_.c_str(), &database_, flags, nullptr);
    if (status != SQLITE_OK) raise(database_, status, path_);
    sqlite3_busy_timeout(database_, 5000);
    // Without another program at the file SQLite needs no index of its log on the disk.
    execute("PRAGMA locking_mode = EXCLUSIVE");
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute("PRAGMA foreign_keys = ON");
    migrate();
  } catch (...) {
    sqlite3_close(database_);
    database_ = nullptr;
    throw;
  }
}

Store::~Store() { sqlite3_close(database_); }

void Store::execute(const char* sql) {
  const int status = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) raise(database_, status, path_);
}

int64_t Store::version() const {
  Statement current(*this, "PRAGMA user_version");
  return current.step() ? current.integer(0) : 0;
}

void Store::migrate() {
  if (version() == static_cast<int64_t>(migrations.size())) return;  // not a byte is written
  Transaction transaction(*this);
  const int64_t version = this->version();
  const auto newest = static_cast<int64_t>(migrations.size());
  if (version > newest) {
    throw Error(Code::unsupported,
                "the job store has version " + std::to_string(version) +
                    " and this dais knows up to " + std::to_string(newest),
                path_, "Use the dais that wrote it, or a newer one");
  }
  for (int64_t step = version; step < newest; ++step) {
    execute(migrations[static_cast<size_t>(step)]);
  }
  execute(("PRAGMA user_version = " + std::to_string(newest)).c_str());
  transaction.commit();
}

void Store::insert_event(double now_s, int64_t job, Phase phase, const std::string& detail) {
  Statement insert(*this, "INSERT INTO event (at_s, job, kind, detail) VALUES (?, ?, ?, ?)");
  insert.bind(1, now_s).bind(2, job).bind(3, phase_name(phase)).bind(4, detail).step();
}

std::vector<Store::Accepted> Store::submit(
    const std::vector<Submission>& submissions, double now_s,
    const std::function<std::vector<Transition>(const std::vector<Accepted>&)>& then) {
  if (degraded_) {
    throw Error(Code::exhausted, "the disk of the job store is full, so no job can be accepted",
                path_, "Free disk space");
  }
  Transaction transaction(*this);
  std::vector<Accepted> accepted;
  for (const Submission& submission : submissions) {
    Statement known(*this, "SELECT id FROM job WHERE key = ?");
    known.bind(1, submission.key);
    if (known.step()) {
      accepted.push_back({known.integer(0), false});
      continue;
    }
    Statement insert(*this, "INSERT INTO job (key, spec, phase, submit_s) VALUES (?, ?, ?, ?)");
    insert.bind(1, submission.key).bind(2, submission.spec);
    insert.bind(3, phase_name(Phase::waiting)).bind(4, now_s).step();
    accepted.push_back({sqlite3_last_insert_rowid(database_), true});
    insert_event(now_s, accepted.back().job, Phase::waiting, "submitted");
  }
  if (then) move_rows(then(accepted), now_s);
  transaction.commit();
  return accepted;
}

void Store::move(const std::vector<Transition>& transitions, double now_s) {
  try {
    move_once(transitions, now_s);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
    // What runs must be accounted for even now: use the space kept back, and that of the log.
    if (!degraded_) free_ballast();
    checkpoint();
    move_once(transitions, now_s);
  }
}

void Store::update_row(const Transition& transition, double now_s) {
  Statement update(*this,
                   "UPDATE job SET phase = ?, attempts = attempts + ?, failures = failures + ?,"
                   " attained_s = attained_s + ?, ready_s = ? WHERE id = ?");
  update.bind(1, phase_name(transition.to)).bind(2, int64_t{transition.to == Phase::starting});
  update.bind(3, int64_t{transition.failure}).bind(4, transition.ran_s);
  update.bind(5, transition.ready_s).bind(6, transition.job).step();
  if (transition.to == Phase::starting) {
    Statement start(*this, "UPDATE job SET placement = ?, start_s = ? WHERE id = ?");
    start.bind(1, transition.placement).bind(2, now_s).bind(3, transition.job).step();
  } else if (ended(transition.to)) {
    Statement end(*this, "UPDATE job SET outcome = ?, end_s = ? WHERE id = ?");
    end.bind(1, transition.detail).bind(2, now_s).bind(3, transition.job).step();
  }
}

void Store::move_once(const std::vector<Transition>& transitions, double now_s) {
  Transaction transaction(*this);
  move_rows(transitions, now_s);
  transaction.commit();
}

void Store::move_rows(const std::vector<Transition>& transitions, double now_s) {
  for (const Transition& transition : transitions) {
    const std::string where = "job " + std::to_string(transition.job);
    Statement current(*this, "SELECT phase FROM job WHERE id = ?");
    current.bind(1, transition.job);
    if (!current.step()) throw Error(Code::not_found, "no such job", where);
    const Phase from = phase_of(current.text(0), path_);
    if (!may_follow(from, transition.to)) {
      throw Error(Code::invalid_argument,
                  "a job that is " + std::string(phase_name(from)) + " cannot become " +
                      std::string(phase_name(transition.to)),
                  where);
    }
    update_row(transition, now_s);
    insert_event(now_s, transition.job, transition.to, transition.detail);
  }
}

JobRow Store::row_of(const Statement& select) const {
  JobRow row;
  row.id = select.integer(0);
  row.key = select.text(1);
  row.spec = select.text(2);
  row.phase = phase_of(select.text(3), path_);
  row.submit_s = select.real(4);
  row.attempts = select.integer(5);
  row.failures = select.integer(6);
  row.held = select.integer(7) != 0;
  row.ready_s = select.real(8);
  row.attained_s = select.real(9);
  row.start_s = select.real(10);
  row.end_s = select.real(11);
  row.placement = select.text(12);
  row.outcome = select.text(13);
  return row;
}

std::vector<JobRow> Store::rows_of(Statement& select) const {
  std::vector<JobRow> rows;
  while (select.step()) rows.push_back(row_of(select));
  return rows;
}

std::optional<JobRow> Store::job(int64_t id) const {
  Statement select(*this, DAIS_JOB_COLUMNS "WHERE id = ?");
  select.bind(1, id);
  if (!select.step()) return std::nullopt;
  return row_of(select);
}

std::vector<JobRow> Store::open_jobs() const {
  Statement select(*this, DAIS_JOB_COLUMNS
                   "WHERE phase NOT IN ('completed', 'failed', 'cancelled') ORDER BY id");
  return rows_of(select);
}

std::vector<JobRow> Store::latest(bool all, int64_t before, int most) const {
  Statement select(*this, all ? DAIS_JOB_COLUMNS "WHERE id < ? ORDER BY id DESC LIMIT ?"
                              : DAIS_JOB_COLUMNS
                              "WHERE id < ? AND phase NOT IN ('completed', 'failed', 'cancelled')"
                              " ORDER BY id DESC LIMIT ?");
  select.bind(1, before).bind(2, int64_t{most});
  return rows_of(select);
}

void Store::hold(int64_t job, bool held, double now_s) {
  Transaction transaction(*this);
  const auto row = this->job(job);
  if (!row) throw Error(Code::not_found, "no such job", "job " + std::to_string(job));
  Statement update(*this, "UPDATE job SET held = ? WHERE id = ?");
  update.bind(1, int64_t{held}).bind(2, job).step();
  insert_event(now_s, job, row->phase, held ? "held" : "released");
  transaction.commit();
}

std::string Store::identity() const {
  Statement select(*this, "SELECT value FROM identity");
  return select.step() ? select.text(0) : std::string();
}

void Store::put_project(const ProjectRow& project, double now_s) {
  Transaction transaction(*this);
  Statement put(*this, "INSERT OR REPLACE INTO project (name, spec) VALUES (?, ?)");
  put.bind(1, project.name).bind(2, project.spec).step();
  audit(now_s, "", "project " + project.name, project.spec);
  transaction.commit();
}

std::vector<ProjectRow> Store::projects() const {
  Statement select(*this, "SELECT name, spec FROM project ORDER BY rowid");
  std::vector<ProjectRow> rows;
  while (select.step()) rows.push_back({select.text(0), select.text(1)});
  return rows;
}

void Store::put_token(const TokenRow& token) {
  Statement put(*this, "INSERT INTO token (hash, user, admin) VALUES (?, ?, ?)");
  put.bind(1, token.hash).bind(2, token.user).bind(3, int64_t{token.admin}).step();
}

TokenRow Store::token(const std::string& hash) const {
  Statement select(*this, "SELECT hash, user, admin FROM token WHERE hash = ?");
  select.bind(1, hash);
  if (!select.step()) throw Error(Code::not_found, "unknown token");
  return {select.text(0), select.text(1), select.integer(2) != 0};
}

void Store::audit(double now_s, const std::string& user, const std::string& action,
                  const std::string& result) {
  Statement insert(*this, "INSERT INTO audit (at_s, user, action, result) VALUES (?, ?, ?, ?)");
  insert.bind(1, now_s).bind(2, user).bind(3, action).bind(4, result).step();
}

std::vector<EventRow> Store::events_of(int64_t job) const {
  Statement select(*this,
                   "SELECT sequence, at_s, job, kind, detail FROM event"
                   " WHERE job = ? ORDER BY sequence");
  select.bind(1, job);
  return events_in(select);
}

std::vector<EventRow> Store::events_in(Statement& select) const {
  std::vector<EventRow> rows;
  while (select.step()) {
    rows.push_back(
        {select.integer(0), select.real(1), select.integer(2), select.text(3), select.text(4)});
  }
  return rows;
}

std::vector<EventRow> Store::events_after(int64_t sequence, int most) const {
  Statement select(*this,
                   "SELECT sequence, at_s, job, kind, detail FROM event"
                   " WHERE sequence > ? ORDER BY sequence LIMIT ?");
  select.bind(1, sequence).bind(2, int64_t{most});
  return events_in(select);
}

// ---- What was used

void Store::add_usage(const UsageRow& row) {
  Statement insert(*this,
                   "INSERT OR REPLACE INTO usage (job, attempt, project, user, end_s, failed,"
                   " held_s, kernel_s, idle_s, unknown_s, moved_bytes, energy_j, cpu_s,"
                   " gpu_memory_peak_bytes, memory_peak_bytes, read_bytes, written_bytes)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, row.job).bind(2, row.attempt).bind(3, row.project).bind(4, row.user);
  insert.bind(5, row.end_s).bind(6, int64_t{row.failed}).bind(7, row.held_s);
  insert.bind(8, row.kernel_s).bind(9, row.idle_s).bind(10, row.unknown_s);
  insert.bind(11, row.moved_bytes).bind(12, row.energy_j).bind(13, row.cpu_s);
  insert.bind(14, row.gpu_memory_peak_bytes).bind(15, row.memory_peak_bytes);
  insert.bind(16, row.read_bytes).bind(17, row.written_bytes).step();
}

std::vector<UsageSum> Store::usage(const std::string& project, double from_s, double to_s) const {
  Statement select(*this,
                   "SELECT project, CAST((end_s - ?1) / 86400 AS INTEGER) AS day, COUNT(*),"
                   " SUM(held_s), SUM(kernel_s), SUM(idle_s), SUM(unknown_s),"
                   " SUM(CASE WHEN failed THEN held_s ELSE 0 END), SUM(energy_j), SUM(cpu_s),"
                   " SUM(read_bytes), SUM(written_bytes)"
                   " FROM usage WHERE end_s >= ?1 AND end_s < ?2 AND (?3 = '' OR project = ?3)"
                   " GROUP BY project, day ORDER BY project, day");
  select.bind(1, from_s).bind(2, to_s).bind(3, project);
  std::vector<UsageSum> sums;
  while (select.step()) {
    sums.push_back({select.text(0), select.integer(1), select.integer(2), select.real(3),
                    select.real(4), select.real(5), select.real(6), select.real(7), select.maybe(8),
                    select.maybe(9), select.maybe(10), select.maybe(11)});
  }
  return sums;
}

void Store::add_rung(const std::string& search, int64_t step, int64_t job, double value) {
  Statement insert(*this,
                   "INSERT OR IGNORE INTO rung (search, step, job, value) VALUES (?, ?, ?, ?)");
  insert.bind(1, search).bind(2, step).bind(3, job).bind(4, value).step();
}

std::vector<double> Store::rung(const std::string& search, int64_t step) const {
  Statement select(*this, "SELECT value FROM rung WHERE search = ? AND step = ?");
  select.bind(1, search).bind(2, step);
  std::vector<double> out;
  while (select.step()) out.push_back(select.real(0));
  return out;
}

int64_t Store::last_rung(const std::string& search, int64_t job) const {
  Statement select(*this, "SELECT max(step) FROM rung WHERE search = ? AND job = ?");
  select.bind(1, search).bind(2, job);
  return select.step() ? select.integer(0) : 0;
}

void Store::add_metrics(const std::vector<MetricRow>& rows, int64_t now_s) {
  Transaction transaction(*this);
  const char* const put =
      "INSERT OR REPLACE INTO metric (resolution_s, device, name, at_s, value)"
      " VALUES (?, ?, ?, ?, ?)";
  for (const MetricRow& row : rows) {
    Statement insert(*this, put);
    insert.bind(1, fine_s).bind(2, int64_t{row.device}).bind(3, row.name);
    insert.bind(4, row.at_s).bind(5, row.value).step();
  }
  const int64_t end_s = now_s / coarse_s * coarse_s;
  Statement known(*this, "SELECT 1 FROM metric WHERE resolution_s = ? AND at_s = ? LIMIT 1");
  known.bind(1, coarse_s).bind(2, end_s);
  if (!known.step()) {
    Statement mean(*this,
                   "INSERT OR REPLACE INTO metric SELECT ?1, device, name, ?2, AVG(value)"
                   " FROM metric WHERE resolution_s = ?3 AND at_s > ?2 - ?1 AND at_s <= ?2"
                   " GROUP BY device, name");
    mean.bind(1, coarse_s).bind(2, end_s).bind(3, fine_s).step();
    Statement old(*this,
                  "DELETE FROM metric WHERE (resolution_s = ?1 AND at_s <= ?3 - 86400)"
                  " OR (resolution_s = ?2 AND at_s <= ?3 - 90 * 86400)");
    old.bind(1, fine_s).bind(2, coarse_s).bind(3, now_s).step();
  }
  transaction.commit();
}

std::vector<MetricRow> Store::metrics(int device, const std::string& name, int64_t resolution_s,
                                      int64_t from_s, int64_t to_s) const {
  Statement select(*this,
                   "SELECT at_s, value FROM metric WHERE resolution_s = ? AND device = ?"
                   " AND name = ? AND at_s >= ? AND at_s < ? ORDER BY at_s");
  select.bind(1, resolution_s).bind(2, int64_t{device}).bind(3, name).bind(4, from_s);
  select.bind(5, to_s);
  std::vector<MetricRow> rows;
  while (select.step()) {
    rows.push_back({resolution_s, select.integer(0), device, name, select.real(1)});
  }
  return rows;
}

void Store::free_ballast() {
  degraded_ = true;
  unlink(ballast_path(path_).c_str());
  if (page_limit_ > 0) limit_pages(page_limit_ + ballast_pages);
}

bool Store::recover() {
  if (degraded_ && take_ballast(path_)) degraded_ = false;
  return !degraded_;
}

void Store::limit_pages(int64_t pages) {
  page_limit_ = pages;
  execute(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
}

}  // namespace dais::jobs
