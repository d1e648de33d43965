// The half of the controller that runs by itself: ends, deadlines, decisions, starts.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/span.h"
#include "jobs/controller.h"
#include "jobs/exec_words.h"
#include "jobs/placement_text.h"
#include "jobs/rotation.h"

namespace dais::jobs {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double shim_poll_s = 0.001;  // between the end of a process and that of its shim
constexpr double logs_every_s = 2, flood_every_s = 0.1;
constexpr double devices_every_s = 1;
constexpr double searches_every_s = 0.5;
constexpr double growth_every_s = 60;
constexpr double artefacts_every_s = 30;
constexpr int64_t most_log_look = 4 << 20;
// A job that could not start for want of space, processes or descriptors is tried again after this.
constexpr double exhausted_wait_s = 2;
// One that was lost without fault of its own, so that what lost it may come to rest.
constexpr double lost_wait_s = 1;

std::string stop_text(const Preemption& preemption, int64_t beneficiary) {
  if (preemption.victim == preemption.beneficiary) return "to go on with more tasks";
  return "preempted for job " + std::to_string(beneficiary);
}

bool shares_device(const Placement& a, const Placement& b) {
  return std::ranges::any_of(a, [&b](const Slot& slot) {
    return std::ranges::any_of(b, [&slot](const Slot& other) {
      return slot.host == other.host && slot.device == other.device;
    });
  });
}

std::string failure_text(const AttemptOutcome& outcome, const JobRequest& request) {
  std::string text;
  if (outcome.groups.memory_kills.value_or(0) > 0) {
    text = "killed for want of memory: the limit is " +
           std::to_string(request.memory_mib * request.tasks) + " MiB";
    if (outcome.groups.memory_peak_bytes) {
      text += ", the peak was " + std::to_string(*outcome.groups.memory_peak_bytes >> 20) + " MiB";
    }
  } else if (!outcome.note.empty()) {
    text = outcome.note;
  } else if (outcome.state == AttemptState::lost) {
    text = "its shim was killed, so nobody knows how it ended";
  } else if (outcome.signal != 0) {
    text = "ended by signal " + std::to_string(outcome.signal) + " (" + strsignal(outcome.signal) +
           ")";
  } else {
    text = "exit code " + std::to_string(outcome.exit_code);
  }
  if (outcome.groups.processes_refused.value_or(0) > 0) {
    text += "; it reached its limit of processes";
  }
  if (request.tasks > 1 && outcome.failed_task >= 0) {
    text += " of task " + std::to_string(outcome.failed_task);
  }
  return text;
}

}  // namespace

void Controller::watch(Entry& entry) {
  for (const ProcessId& process : executor_->processes(attempt_of(entry), entry.request.tasks)) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
    if (fd >= 0) entry.watched.push_back(fd);
  }
}

void Controller::unwatch(Entry& entry) {
  for (const int fd : entry.watched) close(fd);
  entry.watched.clear();
}

// ---- Ends

void Controller::look_at_ends() {
  const Span span("job", "look at ends");
  const std::vector<int64_t> active(active_.begin(), active_.end());
  for (const int64_t id : active) {
    Entry& entry = open_.at(id);
    if (entry.row.phase == Phase::starting && !entry.handed_over) continue;  // not launched yet
    const AttemptOutcome outcome = executor_->inspect(attempt_of(entry), entry.request.tasks);
    if (outcome.state == AttemptState::queued) continue;
    if (entry.row.phase == Phase::starting && outcome.state != AttemptState::lost) {
      entry.handed_over = false;
      move({{id, Phase::running, ""}});
    }
    if (outcome.state != AttemptState::running) {
      finish(entry, outcome);
    } else if (outcome.failed_task >= 0 && !entry.failure) {
      // A gang of which one failed cannot go on.
      executor_->kill(attempt_of(entry), entry.request.tasks);
      entry.failure = outcome;
    }
  }
}

Transition Controller::verdict(Entry& entry, const AttemptOutcome& outcome) const {
  const int64_t id = entry.row.id;
  const double ran = std::max(0.0, now_s_ - entry.row.start_s);
  Transition to{id, Phase::waiting, entry.stop_reason, {}, 0, ran, false};
  switch (entry.afterwards) {
    case Afterwards::cancel: to.to = Phase::cancelled; return to;
    case Afterwards::fail: to.to = Phase::failed; return to;
    case Afterwards::wait:
    case Afterwards::hold: return to;
    case Afterwards::nothing: break;
  }
  if (outcome.succeeded()) return {id, Phase::completed, "exit code 0", {}, 0, ran, false};
  if (outcome.blameless) {
    to.detail = outcome.note;
    to.ready_s = now_s_ + lost_wait_s;
    return to;
  }
  to.failure = true;
  to.detail = failure_text(outcome, entry.request);
  if (entry.row.failures < entry.request.retries) {
    to.ready_s = now_s_ + backoff_s(entry.request, entry.row.failures);
  } else {
    to.to = Phase::failed;
  }
  return to;
}

void Controller::leave_place(Entry& entry, const Transition& transition) {
  if (transition.to == Phase::waiting && !transition.failure && !entry.row.held) {
    if (snapshot_.jobs().at(entry.queued).state == JobState::running) {
      journal_.preempt(entry.queued);
    }
    journal_.stopped(entry.queued);
    return;
  }
  journal_.end(entry.queued, transition.to == Phase::completed);
  by_queued_.erase(entry.queued);
  entry.queued = 0;
}

void Controller::finish(Entry& entry, AttemptOutcome outcome) {
  if (entry.failure) {
    // The others were killed for it.
    outcome.failed_task = entry.failure->failed_task;
    outcome.exit_code = entry.failure->exit_code;
    outcome.signal = entry.failure->signal;
  }
  const int64_t id = entry.row.id;
  // A gang lives and dies together.
  executor_->kill(attempt_of(entry), entry.request.tasks);
  const Transition transition = verdict(entry, outcome);
  const bool keeps =
      ended(transition.to) && !entry.request.artefacts.empty() && artefacts_.promise(entry.row.id);
  move({transition});
  if (keeps) artefacts_due_s_ = now_s_;
  book_usage(entry, outcome, transition);
  unwatch(entry);
  for (int task = 0; task < entry.request.tasks; ++task) {
    const auto log = executor_->log(attempt_of(entry), task);
    const auto limit = static_cast<int64_t>(options_.log_limit_bytes);
    if (log_bytes(log) > limit) trim(log, limit);
  }
  activity_.forget(id);
  executor_->clean_up(attempt_of(entry));
  stand_by_s_ = now_s_ + executor_->stand_by_in_s();
  leave_place(entry, transition);
  unplace(entry);
  entry.deadline_s = never;
  entry.failure.reset();
  entry.handed_over = false;
  entry.afterwards = Afterwards::nothing;
  active_.erase(id);
  for (const int64_t other : active_) open_.at(other).waits_for_end.erase(id);
  if (!ended(transition.to)) return;
  notify(entry);
  open_.erase(id);
}

// Of jobs that ended: now, and again should whoever copies them have died.
void Controller::mind_artefacts() {
  if (now_s_ < artefacts_due_s_) return;
  artefacts_due_s_ = never;
  for (const int64_t job : artefacts_.promised()) {
    const auto row = store_.job(job);
    if (row && !ended(row->phase)) continue;
    if (row) {
      keep_artefacts({job, row->attempts}, request_from_json(row->spec));
      artefacts_due_s_ = now_s_ + artefacts_every_s;
    } else {
      artefacts_.forget(job);
    }
  }
}

void Controller::keep_artefacts(const AttemptName& name, const JobRequest& request) const {
  ArtefactKeeper::Order order{name.job, executor_->work_folder(name, request), request.artefacts,
                              std::nullopt};
  if (options_.own_users) {
    order.reader = account_named(request.user);
    if (!order.reader) return artefacts_.forget(name.job);
  }
  artefacts_.keep(order);
}

// As whoever the job ran as, where it ran, and with nothing of the daemon's.
void Controller::notify(const Entry& entry) const {
  if (entry.request.notify.empty()) return;
  std::optional<Account> owner;
  if (options_.own_users && !(owner = account_named(entry.request.user))) return;
  std::vector<std::string> words = entry.request.notify;
  words.push_back(std::to_string(entry.row.id));
  words.emplace_back(phase_name(entry.row.phase));
  std::vector<std::string> variables = {std::string("PATH=") + default_path,
                                        "HOME=" + home_folder()};
  if (owner) set_user(variables, entry.request.user, *owner);
  std::vector<char*> arguments = exec_words(words), environment = exec_words(variables);
  const std::string folder = executor_->work_folder(attempt_of(entry), entry.request);
  // A grandchild: nobody waits for it, and its failure is its own.
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    close_range(3, ~0U, 0);
    for (const int number : {SIGTERM, SIGINT, SIGPIPE}) std::signal(number, SIG_DFL);
    if (owner && !become(*owner)) _exit(127);
    if (chdir(folder.c_str()) != 0 && chdir("/") != 0) _exit(127);
    execvpe(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
  if (between > 0) waitpid(between, nullptr, 0);
}

// ---- Deadlines

void Controller::mind_deadlines() {
  const std::vector<int64_t> active(active_.begin(), active_.end());
  for (const int64_t id : active) {
    Entry& entry = open_.at(id);
    if (entry.row.phase == Phase::stopping && entry.deadline_s <= now_s_) {
      executor_->kill(attempt_of(entry), entry.request.tasks);
      entry.deadline_s = now_s_ + 1;  // again, should something have slipped through
    } else if (entry.row.phase == Phase::running && entry.request.time_limit_s > 0) {
      const double ran = entry.row.attained_s + now_s_ - entry.row.start_s;
      if (ran >= entry.request.time_limit_s) {
        stop_attempt(entry, Afterwards::fail,
                     "time limit of " +
                         std::to_string(static_cast<int64_t>(entry.request.time_limit_s)) + " s");
      }
    }
  }
}

// A log that grew past the limit keeps one older part; what the job writes next starts it anew.
// Whoever floods his is looked at more often.
void Controller::mind_logs() {
  if (now_s_ < logs_due_s_) return;
  bool flood = false;
  for (const int64_t id : active_) {
    Entry& entry = open_.at(id);
    int64_t printed = 0;
    for (int task = 0; task < entry.request.tasks; ++task) {
      const auto log = executor_->log(attempt_of(entry), task);
      const int64_t size = log_bytes(log);
      printed += size;
      const auto limit = static_cast<int64_t>(options_.log_limit_bytes);
      if (size >= limit) rotate(log, limit);
      flood = flood || size >= limit;
    }
    flood = flood || static_cast<double>(printed - entry.printed) > options_.log_limit_bytes / 8;
    entry.printed = printed;
  }
  logs_due_s_ = now_s_ + (flood ? flood_every_s : logs_every_s);
}

// ---- Searches

void Controller::mind_searches() {
  if (now_s_ - searches_minded_s_ < searches_every_s) return;
  searches_minded_s_ = now_s_;
  const std::vector<int64_t> active(active_.begin(), active_.end());
  for (const int64_t id : active) {
    Entry& entry = open_.at(id);
    if (entry.request.search.first_step > 0 && entry.row.phase == Phase::running) {
      mind_search(entry);
    }
  }
}

// Reads what its first task printed since the last look.
void Controller::mind_search(Entry& entry) {
  std::ifstream log(executor_->log(attempt_of(entry), 0), std::ios::binary | std::ios::ate);
  const auto size = static_cast<int64_t>(log.tellg());
  if (size < entry.log_read) entry.log_read = 0;  // it was rotated
  std::string text(
      static_cast<size_t>(std::clamp<int64_t>(size - entry.log_read, 0, most_log_look)), '\0');
  log.seekg(entry.log_read);
  if (text.empty() || !log.read(text.data(), static_cast<std::streamsize>(text.size()))) return;
  size_t read = 0;
  const std::vector<Report> reports = reports_in(text, read);
  // A line without an end, as long as a look, is passed over.
  entry.log_read += static_cast<int64_t>(read > 0                       ? read
                                         : text.size() == most_log_look ? text.size()
                                                                        : 0);
  for (const Report& report : reports) {
    if (entry.row.phase == Phase::running) compare(entry, report);
  }
}

void Controller::compare(Entry& entry, const Report& report) {
  const Search& search = entry.request.search;
  const int64_t rung =
      rung_after(store_.last_rung(search.group, entry.row.id), search.first_step, search.factor);
  if (report.step < rung) return;
  try {
    store_.add_rung(search.group, rung, entry.row.id, report.value);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
    return;
  }
  const std::vector<double> values = store_.rung(search.group, rung);
  if (!stops_at_rung(values, report.value, search.factor, search.larger)) return;
  // Its reason begins like that of any cancellation: a controller that takes up must see one.
  stop_attempt(entry, Afterwards::cancel,
               "cancelled by its search: at step " + std::to_string(rung) +
                   " it is not among the best of " + std::to_string(values.size()));
}

// ---- Decisions

void Controller::wait_for_victims(Entry& entry) {
  for (const int64_t id : active_) {
    const Entry& other = open_.at(id);
    if (id != entry.row.id && other.row.phase == Phase::stopping &&
        shares_device(entry.placement, other.placement)) {
      entry.waits_for_end.insert(id);
    }
  }
}

// `fresh` names the jobs that are not queued yet.
Controller::Moves Controller::moves_of(const Decision& decision, const Names& fresh) const {
  const auto name = [&](JobId id) {
    const auto found = fresh.find(id);
    return found != fresh.end() ? found->second : by_queued_.at(id);
  };
  Moves moves;
  for (const Preemption& preemption : decision.preempt) {
    moves.push_back({name(preemption.victim), Phase::stopping,
                     stop_text(preemption, name(preemption.beneficiary))});
  }
  for (const Start& start : decision.start) {
    moves.push_back({name(start.job), Phase::starting, "", placement_text(start.placement)});
  }
  return moves;
}

void Controller::decide_and_apply() {
  const Span span("job", "decide and book");
  const Decision decision = journal_.decide(options_.policy);
  if (decision.empty()) return;
  move(moves_of(decision));
  carry_out(decision);
}

// Of a decision whose moves are stored.
void Controller::carry_out(const Decision& decision) {
  journal_.apply(decision);
  changed_ = changed_ || decision.more;
  for (const Preemption& preemption : decision.preempt) {
    Entry& victim = open_.at(by_queued_.at(preemption.victim));
    victim.afterwards = Afterwards::wait;
    victim.stop_reason = stop_text(preemption, by_queued_.at(preemption.beneficiary));
    victim.deadline_s = now_s_ + victim.request.grace_s;
    executor_->signal(attempt_of(victim), victim.request.tasks, SIGTERM);
  }
  for (const Start& start : decision.start) {
    const int64_t id = by_queued_.at(start.job);
    Entry& entry = open_.at(id);
    place(entry, start.placement);
    active_.insert(id);
    for (const Preemption& preemption : decision.preempt) {
      if (preemption.beneficiary == start.job) {
        entry.waits_for_end.insert(by_queued_.at(preemption.victim));
      }
    }
    wait_for_victims(entry);
  }
}

void Controller::launch_ready() {
  std::vector<int64_t> ready;
  for (const int64_t id : active_) {
    const Entry& entry = open_.at(id);
    const bool launched = entry.row.phase != Phase::starting || entry.handed_over;
    if (!launched && entry.waits_for_end.empty()) ready.push_back(id);
  }
  for (const int64_t id : ready) launch(open_.at(id));
}

// Of an attempt that does not begin.
void Controller::give_up_place(Entry& entry) {
  journal_.end(entry.queued, false);
  by_queued_.erase(entry.queued);
  entry.queued = 0;
  unplace(entry);
  active_.erase(entry.row.id);
  executor_->clean_up(attempt_of(entry));
}

void Controller::launch(Entry& entry) {
  const int64_t id = entry.row.id;
  if (entry.cut_short) {
    move({{id, Phase::waiting, "the daemon ended before it was started"}});
    entry.cut_short = false;
    return give_up_place(entry);
  }
  try {
    // It may run already, where a full disk kept that from being written down.
    if (executor_->inspect(attempt_of(entry), entry.request.tasks).state == AttemptState::absent) {
      executor_->start(attempt_of(entry), entry.request, entry.placement);
    }
    stand_by_s_ = now_s_ + executor_->stand_by_in_s();
    entry.log_read = entry.printed = 0;
  } catch (const Error& error) {
    const bool later = error.code() == Code::exhausted;
    // A full disk is not the job's fault. A program that is not there now is not there in a second:
    // no retry.
    move(
        {later
             ? Transition{id, Phase::waiting, error.what(), {}, now_s_ + exhausted_wait_s, 0, false}
             : Transition{id, Phase::failed, error.what(), {}, 0, 0, true}});
    give_up_place(entry);
    if (!later) {
      notify(entry);
      open_.erase(id);
    }
    return;
  }
  if (executor_->hands_over()) {
    entry.handed_over = true;
    return;
  }
  move({{id, Phase::running, ""}});
  watch(entry);
}

double Controller::step() {
  now_s_ = std::max(now_s_, options_.clock());
  journal_.advance(now_s_);
  look_at_ends();
  mind_deadlines();
  mind_logs();
  mind_searches();
  mind_devices();
  mind_activity();
  mind_hosts();
  mind_patience();
  mind_artefacts();
  enqueue_ready();
  const bool grows = !snapshot_.growing().empty() && now_s_ - decided_s_ >= growth_every_s;
  if (changed_ || snapshot_.next_change_s() <= now_s_ || grows) {
    changed_ = false;
    decided_s_ = now_s_;
    decide_and_apply();
  }
  launch_ready();
  if (stand_by_s_ <= now_s_) {
    executor_->stand_by();
    stand_by_s_ = never;
  }
  const double next = std::min(next_of_jobs(), next_of_duties());
  return changed_ ? 0 : std::max(0.0, next);
}

// In how many seconds a job needs a look, by its own times; collects what to wait for, too.
double Controller::next_of_jobs() {
  double next = never;
  awaited_.clear();
  for (const auto& [id, entry] : open_) {
    next = std::min(next, entry.deadline_s - now_s_);
    if (entry.row.phase == Phase::waiting && entry.row.ready_s > now_s_) {
      next = std::min(next, entry.row.ready_s - now_s_);
    }
    if (entry.row.phase == Phase::running && entry.request.time_limit_s > 0) {
      next = std::min(
          next, entry.request.time_limit_s - entry.row.attained_s - (now_s_ - entry.row.start_s));
    }
    for (const int fd : entry.watched) {
      pollfd ready{fd, POLLIN, 0};
      if (poll(&ready, 1, 0) == 1) {
        next = std::min(next, shim_poll_s);
      } else {
        awaited_.push_back(fd);
      }
    }
  }
  return next;
}

// In how many seconds one of the things that step() minds is due.
double Controller::next_of_duties() const {
  double next = std::min(snapshot_.next_change_s(), stand_by_s_) - now_s_;
  if (!active_.empty()) {
    next =
        std::min({next, logs_due_s_ - now_s_, activity_due_s_ - now_s_, executor_->look_every_s()});
  }
  const bool searches = std::ranges::any_of(
      active_, [this](int64_t id) { return open_.at(id).request.search.first_step > 0; });
  if (searches) next = std::min(next, searches_every_s);
  if (!snapshot_.growing().empty()) next = std::min(next, decided_s_ + growth_every_s - now_s_);
  next = std::min(next, artefacts_due_s_ - now_s_);
  return watch_.watching() ? std::min(next, devices_every_s) : next;
}

}  // namespace dais::jobs
