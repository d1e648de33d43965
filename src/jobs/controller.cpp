#include "jobs/controller.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/error.h"
#include "jobs/placement_text.h"
#include "jobs/runner.h"

namespace dais::jobs {
namespace {

std::string named(int64_t job) { return "job " + std::to_string(job); }

ProjectRequest named_project(const std::string& name) {
  ProjectRequest project;
  project.name = name;
  return project;
}

// Why the last attempt was told to stop: a cancellation stands whatever followed it, and to hold or
// release a job is no reason.
std::string stop_reason(const std::vector<EventRow>& events) {
  std::string reason;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == phase_name(Phase::starting)) break;
    if (event->kind != phase_name(Phase::stopping)) continue;
    if (event->detail.starts_with("cancelled")) return event->detail;
    const bool a_hold = event->detail == "held" || event->detail == "released";
    if (reason.empty() && !a_hold) reason = event->detail;
  }
  return reason;
}

std::unique_ptr<Executor> make_executor(const Controller::Options& options, const Store& store) {
  if (options.slurm) {
    return std::make_unique<SlurmExecutor>(options.folder, *options.slurm, store.identity(),
                                           options.own_users);
  }
  return std::make_unique<Runner>(options.folder, options.own_users, options.processes_per_task,
                                  options.devices);
}

[[noreturn]] void refuse(const std::vector<std::string>& problems, const std::string& where) {
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : "; ") + problem;
  throw Error(Code::invalid_argument, all, where);
}

}  // namespace

Controller::Controller(Options options)
    : options_(std::move(options)),
      now_s_(options_.clock()),
      store_((options_.folder / "jobs.sqlite").string()),
      executor_(make_executor(options_, store_)),
      artefacts_(options_.folder, options_.artefacts),
      snapshot_(options_.policy),
      journal_(snapshot_, options_.folder / "cycles", options_.policy),
      watch_(options_.nvml) {
  journal_.advance(now_s_);
  for (const Host& host : executor_->hosts(options_.machine)) journal_.add_host(host);
  recover();
}

Controller::~Controller() {
  for (auto& [id, entry] : open_) unwatch(entry);
}

Controller::Entry& Controller::entry(int64_t job) {
  const auto found = open_.find(job);
  if (found != open_.end()) return found->second;
  if (store_.job(job)) {
    throw Error(Code::invalid_argument, "the job has ended", named(job));
  }
  throw Error(Code::not_found, "no such job", named(job), "`dais jobs --all` lists them");
}

void Controller::move(const Moves& moves) {
  if (moves.empty()) return;
  store_.move(moves, now_s_);
  note(moves);
}

// Brings what is known of open jobs in step with moves that are stored.
void Controller::note(const Moves& moves) {
  for (const Transition& to : moves) {
    const auto found = open_.find(to.job);
    if (found == open_.end()) continue;
    JobRow& row = found->second.row;
    row.phase = to.to;
    row.attempts += to.to == Phase::starting;
    row.failures += to.failure;
    row.attained_s += to.ran_s;
    row.ready_s = to.ready_s;
    if (to.to == Phase::starting) {
      row.placement = to.placement;
      row.start_s = now_s_;
    }
  }
  changed_ = true;
}

void Controller::check(const JobRequest& request, std::vector<std::string>& problems) const {
  const std::vector<std::string> broken = problems_of(request);
  problems.insert(problems.end(), broken.begin(), broken.end());
  const auto found = projects_.find(request.project);
  if (found == projects_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, project] : projects_) names.push_back(name);
    const std::string near = nearest(request.project, names);
    problems.push_back("project: no project '" + request.project + "'" +
                       (near.empty() ? "" : "; did you mean '" + near + "'?"));
    return;
  }
  if (options_.own_users && !is_user(request.user)) {
    problems.push_back("user: this machine has no user '" + request.user + "'");
  }
  // What follows is for amounts that are amounts.
  if (!broken.empty()) return;
  const std::vector<std::string> cannot = executor_->problems(request);
  problems.insert(problems.end(), cannot.begin(), cannot.end());
  const Shape shape = shape_of(request, request.min_tasks > 0 ? request.min_tasks : request.tasks);
  if (!snapshot_.capacity().possible(shape, true)) {
    const Resources& all = snapshot_.capacity().total();
    const HostId hosts = snapshot_.capacity().hosts();
    problems.push_back("no machine could ever hold it: " +
                       (hosts == 1 ? "this one has " : std::to_string(hosts) + " hosts have ") +
                       std::to_string(all.gpu_milli / whole_gpu) + " GPUs, " +
                       std::to_string(all.cpu_milli / 1000) + " CPUs and " +
                       std::to_string(all.memory_mib) + " MiB");
  }
  if (!shape.total().within(found->second.second.limit)) {
    problems.push_back("it asks for more than the limit of project " + request.project);
  }
  for (const int64_t job : request.after) {
    if (!store_.job(job)) problems.push_back("after: no job " + std::to_string(job));
  }
}

// Memory of a GPU becomes the part of the smallest device that holds it.
void Controller::resolve_amounts(JobRequest& request, std::vector<std::string>& problems) const {
  int64_t least_mib = 0;
  for (const devices::DeviceSample& device : watch_.latest().devices) {
    const int64_t mib = device.memory_total_bytes.value_or(0) >> 20;
    if (mib > 0) least_mib = least_mib == 0 ? mib : std::min(least_mib, mib);
  }
  const auto resolve = [&](int64_t mib, int64_t& milli) {
    if (mib <= 0) return;
    if (least_mib == 0) {
      problems.emplace_back("gpus: nobody tells how much memory they have; ask for a part of one");
    } else if (mib > least_mib) {
      problems.push_back("gpus: one of them has " + std::to_string(least_mib) + " MiB only");
    } else {
      milli = (mib * whole_gpu + least_mib - 1) / least_mib;
    }
  };
  resolve(request.gpu_mib, request.gpu_milli);
  if (request.gpu_parts.empty()) return;
  request.gpu_milli = 0;
  for (DevicePart& part : request.gpu_parts) {
    resolve(part.gpu_mib, part.gpu_milli);
    // Others are refused in a moment.
    if (part.gpu_milli > 0 && part.gpu_milli <= whole_gpu) request.gpu_milli += part.gpu_milli;
  }
}

std::vector<int64_t> Controller::submit(std::vector<Submission> submissions) {
  now_s_ = options_.clock();
  std::vector<std::string> problems;
  for (Submission& submission : submissions) {
    resolve_amounts(submission.request, problems);
    check(submission.request, problems);
  }
  if (!problems.empty()) {
    std::ranges::sort(problems);
    problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
    refuse(problems, "submit");
  }
  std::vector<Store::Submission> rows;
  const std::string group =
      std::to_string(static_cast<int64_t>(now_s_ * 1e6)) + "-" + std::to_string(getpid());
  for (size_t i = 0; i < submissions.size(); ++i) {
    JobRequest& request = submissions[i].request;
    if (request.search.first_step > 0) request.search.group = group;
    std::string key = submissions[i].key;
    if (key.empty()) {
      key = "auto-" + std::to_string(static_cast<int64_t>(now_s_ * 1e6)) + "-" +
            std::to_string(getpid()) + "-" + std::to_string(i);
    }
    std::optional<Account> owner;
    if (options_.own_users && request.snapshot) owner = account_of(request.user);
    executor_->prepare(key, request, owner);
    rows.push_back({key, to_json(request)});
  }
  // What starts at once is decided before it is stored: one flush of the disk instead of two.
  journal_.advance(now_s_);
  Decision decision;
  Moves moves;
  const auto accepted = store_.submit(rows, now_s_, [&](const std::vector<Store::Accepted>& jobs) {
    Names fresh;
    decision = foresee(submissions, jobs, fresh);
    return moves = moves_of(decision, fresh);
  });
  std::vector<int64_t> ids;
  for (size_t i = 0; i < accepted.size(); ++i) {
    const int64_t id = accepted[i].job;
    ids.push_back(id);
    executor_->keep(rows[i].key, id);
    if (!accepted[i].fresh) continue;
    Entry& entry = open_[id];
    entry.row.id = id;
    entry.row.key = rows[i].key;
    entry.row.spec = rows[i].spec;
    entry.row.submit_s = now_s_;
    entry.request = submissions[i].request;
    entry.asked_tasks = entry.request.tasks;
    if (entry.request.after.empty()) enqueue(entry);
  }
  changed_ = true;
  if (decision.empty()) return ids;
  DAIS_CHECK(journal_.decide(options_.policy) == decision);
  note(moves);
  carry_out(decision);
  return ids;
}

// What would be decided with the jobs that are about to be stored in the queue.
Decision Controller::foresee(const std::vector<Submission>& submissions,
                             const std::vector<Store::Accepted>& accepted, Names& fresh) const {
  Snapshot with = snapshot_;
  for (size_t i = 0; i < accepted.size(); ++i) {
    const JobRequest& request = submissions[i].request;
    if (!accepted[i].fresh || !request.after.empty()) continue;
    fresh[with.submit(std::make_shared<const JobSpec>(spec_of(request)))] = accepted[i].job;
  }
  return decide(with, options_.policy);
}

// ---- Taking up

void Controller::recover() {
  for (const ProjectRow& row : store_.projects()) {
    add_to_snapshot(project_from_json(row.spec));
  }
  if (!projects_.contains("default")) put_project(named_project("default"));
  remember_usage();
  for (const JobRow& row : store_.open_jobs()) {
    Entry& entry = open_[row.id];
    entry.row = row;
    entry.request = request_from_json(row.spec);
    entry.asked_tasks = entry.request.tasks;
    // The clock may have been set back meanwhile.
    entry.row.ready_s = std::min(row.ready_s, now_s_ + backoff_s(entry.request, row.failures));
    entry.row.start_s = std::min(row.start_s, now_s_);
    executor_->keep(row.key, row.id);
    if (row.phase != Phase::waiting) adopt(entry);
  }
  std::vector<AttemptName> active;
  for (const int64_t id : active_) active.push_back(attempt_of(open_.at(id)));
  executor_->all_adopted(active);
}

// Shares go by what was used lately, whoever ran the daemon then. Sums by day are exact enough for
// a half-life of days.
void Controller::remember_usage() {
  constexpr double half_lives = 8, day_s = 86'400;
  const double span_s = half_lives * options_.policy.half_life_s;
  std::map<ProjectId, double> used;
  for (const UsageSum& sum : store_.usage("", now_s_ - span_s, now_s_)) {
    const auto project = projects_.find(sum.project);
    if (project == projects_.end()) continue;
    const double age_s = span_s - (static_cast<double>(sum.day) + 0.5) * day_s;
    used[project->second.first] +=
        sum.held_s * std::exp2(-std::max(0.0, age_s) / options_.policy.half_life_s);
  }
  for (const auto& [project, gpu_s] : used) journal_.add_usage(project, gpu_s);
}

// An elastic job has as many tasks as its place holds.
void Controller::place(Entry& entry, Placement placement) {
  entry.placement = std::move(placement);
  if (!entry.placement.empty()) entry.request.tasks = tasks_in(entry.placement);
}

void Controller::unplace(Entry& entry) {
  entry.placement.clear();
  entry.request.tasks = entry.asked_tasks;
}

// Writes nothing: it must work on a full disk.
void Controller::adopt(Entry& entry) {
  enqueue(entry);  // for all the tasks it asks for, however many have a place
  place(entry, placement_from_text(entry.row.placement));
  const AttemptOutcome outcome = executor_->inspect(attempt_of(entry), entry.request.tasks);
  const bool none = outcome.state == AttemptState::absent && !executor_->hands_over();
  if (entry.row.phase == Phase::starting && none) {
    // Not every task exists: nothing of it may go on.
    executor_->kill(attempt_of(entry), entry.request.tasks);
    entry.cut_short = true;
    entry.row.start_s = now_s_;
  }
  // Or forward: how long it has run is not for the clock to say.
  const auto age_s = executor_->age_s(attempt_of(entry), entry.request.tasks);
  if (age_s) entry.row.start_s = now_s_ - *age_s;
  if (executor_->hands_over()) {
    entry.handed_over = entry.row.phase == Phase::starting;
    executor_->start(attempt_of(entry), entry.request, entry.placement);
  }
  journal_.add_usage(projects_.at(entry.request.project).first,
                     (now_s_ - entry.row.start_s) * static_cast<double>(entry.request.gpu_milli) *
                         entry.request.tasks / whole_gpu);
  journal_.start(entry.queued, entry.placement, Standing::normal);
  active_.insert(entry.row.id);
  // What it is now, launch() writes down.
  if (entry.row.phase == Phase::starting && !entry.handed_over) return;
  if (entry.row.phase == Phase::stopping) {
    journal_.preempt(entry.queued);
    const std::string reason = stop_reason(store_.events_of(entry.row.id));
    entry.stop_reason = reason;
    entry.afterwards = reason.starts_with("cancelled")    ? Afterwards::cancel
                       : reason.starts_with("time limit") ? Afterwards::fail
                       : entry.row.held                   ? Afterwards::hold
                                                          : Afterwards::wait;
    entry.deadline_s = now_s_ + entry.request.grace_s;
    executor_->signal(attempt_of(entry), entry.request.tasks, SIGTERM);
  }
  watch(entry);
}

Project Controller::governed(const ProjectRequest& project) const {
  Project out;
  out.name = project.name;
  out.quota = project.quota;
  out.limit = project.limit;
  out.weight = project.weight;
  if (!project.parent.empty()) out.parent = projects_.at(project.parent).first;
  return out;
}

void Controller::add_to_snapshot(const ProjectRequest& project) {
  const auto found = projects_.find(project.name);
  if (found != projects_.end()) {
    journal_.set_project(found->second.first, governed(project));
    found->second.second = project;
    return;
  }
  const ProjectId id = journal_.add_project(governed(project));
  projects_[project.name] = {id, project};
}

void Controller::put_project(const ProjectRequest& project) {
  if (!project.parent.empty()) this->project(project.parent);
  add_to_snapshot(project);
  store_.put_project({project.name, to_json(project)}, now_s_);
  changed_ = true;
}

std::vector<ProjectRequest> Controller::projects() const {
  std::vector<ProjectRequest> out;
  for (const auto& [name, project] : projects_) out.push_back(project.second);
  return out;
}

const ProjectRequest& Controller::project(const std::string& name) const {
  const auto found = projects_.find(name);
  if (found != projects_.end()) return found->second.second;
  std::vector<std::string> names;
  for (const auto& [known, project] : projects_) names.push_back(known);
  const std::string near = nearest(name, names);
  throw Error(Code::not_found, "no such project", name,
              near.empty() ? "`dais project` lists them" : "Did you mean '" + near + "'?");
}

// ---- The queue

JobSpec Controller::spec_of(const JobRequest& request) const {
  JobSpec spec;
  spec.name = request.name;
  spec.project = projects_.at(request.project).first;
  spec.priority = request.priority;
  const bool elastic = request.min_tasks > 0 && request.min_tasks < request.tasks;
  spec.shape = shape_of(request, elastic ? request.min_tasks : request.tasks);
  if (elastic) {
    spec.fewest_tasks = request.min_tasks;
    spec.most_tasks = request.tasks;
  }
  spec.time_limit_s = request.time_limit_s;
  spec.min_run_s = request.min_run_s;
  return spec;
}

void Controller::enqueue(Entry& entry) {
  entry.queued = journal_.submit(std::make_shared<const JobSpec>(spec_of(entry.request)));
  by_queued_[entry.queued] = entry.row.id;
  changed_ = true;
}

bool Controller::dependencies_met(Entry& entry) {
  bool met = true;
  for (const int64_t job : entry.request.after) {
    const auto row = store_.job(job);
    if (row && row->phase == Phase::completed) continue;
    if (!row || ended(row->phase)) {
      end_waiting(entry, Phase::cancelled, named(job) + ", which it comes after, did not complete");
      return false;
    }
    met = false;
  }
  return met;
}

void Controller::enqueue_ready() {
  std::vector<int64_t> ids;
  for (auto& [id, entry] : open_) {
    const bool waits = entry.row.phase == Phase::waiting && entry.queued == 0 && !entry.row.held &&
                       entry.row.ready_s <= now_s_;
    if (waits) ids.push_back(id);
  }
  for (const int64_t id : ids) {
    const auto found = open_.find(id);
    if (found != open_.end() && dependencies_met(found->second)) enqueue(found->second);
  }
}

// ---- Requests of people

void Controller::end_waiting(Entry& entry, Phase phase, const std::string& reason) {
  move({{entry.row.id, phase, reason}});
  if (entry.queued) {
    journal_.end(entry.queued, false);
    by_queued_.erase(entry.queued);
  }
  notify(entry);
  open_.erase(entry.row.id);
}

void Controller::stop_attempt(Entry& entry, Afterwards afterwards, const std::string& reason) {
  if (entry.row.phase != Phase::stopping) {
    move({{entry.row.id, Phase::stopping, reason}});
    if (snapshot_.jobs().at(entry.queued).state == JobState::running) {
      journal_.preempt(entry.queued);
    }
    entry.deadline_s = now_s_ + entry.request.grace_s;
    executor_->signal(attempt_of(entry), entry.request.tasks, SIGTERM);
  }
  entry.afterwards = afterwards;
  entry.stop_reason = reason;
}

void Controller::cancel(int64_t job, const std::string& by) {
  now_s_ = options_.clock();
  Entry& found = entry(job);
  const std::string reason = "cancelled by " + by;
  if (found.row.phase == Phase::waiting) return end_waiting(found, Phase::cancelled, reason);
  // A new reason to stop is stored as well: a controller that takes up after this one must know it.
  if (found.row.phase == Phase::stopping) move({{job, Phase::stopping, reason}});
  stop_attempt(found, Afterwards::cancel, reason);
}

void Controller::pause(int64_t job, const std::string& by) {
  now_s_ = options_.clock();
  Entry& found = entry(job);
  store_.hold(job, true, now_s_);
  found.row.held = true;
  if (found.row.phase != Phase::waiting) {
    if (found.afterwards != Afterwards::cancel) {
      stop_attempt(found, Afterwards::hold, "paused by " + by);
    }
  } else if (found.queued) {
    journal_.end(found.queued, false);
    by_queued_.erase(found.queued);
    found.queued = 0;
    changed_ = true;
  }
}

void Controller::resume(int64_t job, const std::string& by) {
  now_s_ = options_.clock();
  Entry& found = entry(job);
  store_.hold(job, false, now_s_);
  store_.audit(now_s_, by, "resume " + named(job), "ok");
  found.row.held = false;
  if (found.afterwards == Afterwards::hold) found.afterwards = Afterwards::wait;
  changed_ = true;
}

void Controller::requeue(int64_t job, const std::string& by) {
  now_s_ = options_.clock();
  Entry& found = entry(job);
  if (found.row.phase == Phase::waiting) return;
  if (found.afterwards == Afterwards::cancel) return;
  stop_attempt(found, Afterwards::wait, "requeued by " + by);
}

// ---- What people see

JobView Controller::view_of(const JobRow& row) const {
  JobView view{row, request_from_json(row.spec), placement_from_text(row.placement)};
  view.wall = executor_->wall(view.request, view.placement);
  if (row.phase == Phase::waiting || ended(row.phase)) view.placement.clear();
  return view;
}

std::optional<JobView> Controller::show(int64_t job) const {
  const auto row = store_.job(job);
  return row ? std::optional(view_of(*row)) : std::nullopt;
}

std::vector<JobView> Controller::list(bool all, int64_t before, int most,
                                      const std::function<bool(const JobView&)>& shown) const {
  // So many rows of others are passed over at most: nothing is decided meanwhile.
  constexpr int kMostRows = 50'000;
  const int page = std::clamp(most, 100, 1000);
  std::vector<JobView> out;
  for (int looked = 0; looked < kMostRows; looked += page) {
    const auto rows = store_.latest(all, before, page);
    for (const JobRow& row : rows) {
      if (std::ssize(out) == most) return out;
      JobView view = view_of(row);
      if (!shown || shown(view)) out.push_back(std::move(view));
      before = row.id;
    }
    if (std::ssize(rows) < page) break;
  }
  return out;
}

std::string Controller::why(int64_t job) const {
  const auto found = open_.find(job);
  if (found == open_.end()) {
    const auto row = store_.job(job);
    if (!row) throw Error(Code::not_found, "no such job", named(job));
    return "it has ended: " + std::string(phase_name(row->phase)) +
           (row->outcome.empty() ? "" : ", " + row->outcome);
  }
  const Entry& entry = found->second;
  if (entry.row.phase == Phase::running) return "it runs";
  if (entry.row.phase == Phase::starting) {
    return entry.handed_over ? "it was handed to Slurm, which has not begun it yet"
                             : "it is being started";
  }
  if (entry.row.phase == Phase::stopping) return "it is stopping: " + entry.stop_reason;
  if (entry.row.held) return "it is held; `dais resume " + std::to_string(job) + "` lets it go";
  if (entry.row.ready_s > now_s_) {
    return "it could not go on and is tried again in " +
           std::to_string(static_cast<int64_t>(std::ceil(entry.row.ready_s - now_s_))) + " s";
  }
  if (!entry.queued) {
    for (const int64_t other : entry.request.after) {
      const auto row = store_.job(other);
      if (row && row->phase != Phase::completed) return "it waits for " + named(other);
    }
    return "it is about to be queued";
  }
  return jobs::why(snapshot_, options_.policy, entry.queued).text + closed_devices();
}

}  // namespace dais::jobs
