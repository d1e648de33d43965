#include "jobs/simulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <queue>

#include "jobs/decision.h"

namespace dais::jobs {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// With jobs waiting, policies are asked at least this often: waiting itself changes ranks.
constexpr double longest_pause_s = 3600;
constexpr double sample_every_s = 3600;
constexpr int rounds_per_cycle = 8;

struct Life {
  double submit_s = 0, duration_s = 0, remaining_s = 0;
  double start_s = -1, end_s = -1;
  int gpus = 0;
  ProjectId project = 0;
  int attempts = 0;
  int generation = 0;
};

struct Ending {
  double at_s;
  JobId job;
  int generation;
  bool operator>(const Ending& other) const {
    return std::tie(at_s, job) > std::tie(other.at_s, other.job);
  }
};

class Simulation {
 public:
  Simulation(const std::vector<TraceJob>& trace, const SimulationOptions& options)
      : options_(options), snapshot_(options.policy) {
    add_hosts();
    add_jobs(trace);
  }

  SimulationReport run() {
    double now_s = lives_.empty() ? 0 : lives_.front().submit_s;
    while (next_submit_ < lives_.size() || !endings_.empty() || !snapshot_.jobs().empty()) {
      double next_s = next_event_s(now_s);
      if (options_.cycle_s > 0) {
        const double boundary_s = std::ceil(next_s / options_.cycle_s) * options_.cycle_s;
        next_s = boundary_s <= now_s ? now_s + options_.cycle_s : boundary_s;
      }
      now_s = std::max(now_s, next_s);
      play_until(now_s);
      schedule();
      sample(now_s);
    }
    return report();
  }

 private:
  void add_hosts() {
    int left = options_.gpus;
    for (int host = 0; left > 0; ++host) {
      Host machine;
      machine.name = "host" + std::to_string(host);
      machine.rack = static_cast<uint32_t>(host / options_.hosts_per_rack);
      machine.devices = std::min(left, options_.gpus_per_host);
      left -= machine.devices;
      snapshot_.add_host(std::move(machine));
    }
  }

  void add_jobs(const std::vector<TraceJob>& trace) {
    std::map<std::string, ProjectId> ids;
    std::map<int, Shape> shapes;
    for (const TraceJob& job : trace) {
      if (job.gpus > options_.gpus) {
        ++report_.skipped;
        continue;
      }
      auto [found, added] = ids.emplace(job.project, 0);
      if (added) {
        Project project;
        project.name = job.project;
        found->second = snapshot_.add_project(std::move(project));
        report_.projects.push_back({job.project, 0, 0, 0});
      }
      Life life;
      life.submit_s = job.submit_s;
      life.duration_s = life.remaining_s = job.duration_s;
      life.gpus = job.gpus;
      life.project = found->second;
      lives_.push_back(life);
    }
    running_gpus_.assign(report_.projects.size(), 0);
  }

  double next_event_s(double now_s) {
    while (!endings_.empty() && endings_.top().generation != life(endings_.top().job).generation) {
      endings_.pop();
    }
    double next_s = next_submit_ < lives_.size() ? lives_[next_submit_].submit_s : never;
    if (!endings_.empty()) next_s = std::min(next_s, endings_.top().at_s);
    if (!snapshot_.waiting().empty()) {
      next_s = std::min({next_s, snapshot_.next_change_s(), now_s + longest_pause_s});
    }
    return next_s;
  }

  // Submissions and endings up to a moment, in order.
  void play_until(double now_s) {
    while (true) {
      const bool arrives = next_submit_ < lives_.size() && lives_[next_submit_].submit_s <= now_s;
      const bool ends = !endings_.empty() && endings_.top().at_s <= now_s;
      if (!arrives && !ends) break;
      if (ends && (!arrives || endings_.top().at_s <= lives_[next_submit_].submit_s)) {
        const Ending ending = endings_.top();
        endings_.pop();
        if (ending.generation == life(ending.job).generation) end(ending);
      } else {
        submit(lives_[next_submit_++]);
      }
    }
    snapshot_.advance(now_s);
  }

  void submit(const Life& life) {
    snapshot_.advance(life.submit_s);
    auto spec = std::make_shared<JobSpec>();
    spec->project = life.project;
    spec->shape.tasks = life.gpus;
    spec->shape.task.gpu_milli = whole_gpu;
    snapshot_.submit(std::move(spec));
  }

  void end(const Ending& ending) {
    snapshot_.advance(ending.at_s);
    snapshot_.end(ending.job, true);
    Life& ended = life(ending.job);
    leave_gpus(ended, ending.at_s);
    ended.end_s = ending.at_s;
  }

  void schedule() {
    for (int round = 0; round < rounds_per_cycle && decide_once(); ++round) {
    }
  }

  // True when victims wait again, so that another round may place them.
  bool decide_once() {
    bool preempted = false, more = true;
    while (more) {
      if (snapshot_.waiting().empty()) return false;
      const auto begin = std::chrono::steady_clock::now();
      const Decision decision = decide(snapshot_, options_.policy);
      const auto took = std::chrono::steady_clock::now() - begin;
      decision_us_.push_back(std::chrono::duration<float, std::micro>(took).count());
      apply(snapshot_, decision);
      for (const Preemption& preemption : decision.preempt) stop(preemption.victim);
      for (const Start& start : decision.start) begin_run(start.job);
      preempted = preempted || !decision.preempt.empty();
      more = decision.more;
    }
    return preempted;
  }

  void begin_run(JobId id) {
    Life& begun = life(id);
    if (begun.attempts++ > 0) {
      begun.remaining_s += options_.resume_cost_s;
      resume_gpu_s_ += options_.resume_cost_s * begun.gpus;
    }
    begun.start_s = snapshot_.now_s();
    running_gpus_[begun.project] += begun.gpus;
    endings_.push({begun.start_s + begun.remaining_s, id, begun.generation});
  }

  void stop(JobId id) {
    Life& stopped = life(id);
    ++stopped.generation;
    ++report_.preemptions;
    stopped.remaining_s -= snapshot_.now_s() - stopped.start_s;
    leave_gpus(stopped, snapshot_.now_s());
    snapshot_.stopped(id);
  }

  void leave_gpus(const Life& life, double at_s) {
    busy_gpu_s_ += (at_s - life.start_s) * life.gpus;
    running_gpus_[life.project] -= life.gpus;
  }

  void sample(double now_s) {
    if (!report_.timeline.empty() && now_s < report_.timeline.back().at_s + sample_every_s) return;
    report_.timeline.push_back(
        {now_s, running_gpus_, static_cast<int64_t>(snapshot_.waiting().size())});
  }

  Life& life(JobId id) { return lives_[id - 1]; }
  SimulationReport report();

  const SimulationOptions& options_;
  Snapshot snapshot_;
  std::vector<Life> lives_;  // job n is lives_[n - 1]
  size_t next_submit_ = 0;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
  std::vector<int> running_gpus_;
  std::vector<float> decision_us_;
  double busy_gpu_s_ = 0, resume_gpu_s_ = 0;
  SimulationReport report_;
};

// The value below which a part of the values lies; sorts them.
template <typename T>
double quantile(std::vector<T>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto index = static_cast<size_t>(part * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

template <typename T>
double mean(const std::vector<T>& values) {
  double sum = 0;
  for (T value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

SimulationReport Simulation::report() {
  std::vector<double> completion, queue, slowdown;
  std::vector<double> durations(report_.projects.size()), completions(report_.projects.size());
  for (const Life& life : lives_) {
    const double took_s = life.end_s - life.submit_s;
    completion.push_back(took_s);
    queue.push_back(took_s - life.duration_s);
    slowdown.push_back(took_s / std::max(life.duration_s, 10.0));
    durations[life.project] += std::max(life.duration_s, 10.0);
    completions[life.project] += took_s;
    ++report_.projects[life.project].jobs;
    report_.makespan_s = std::max(report_.makespan_s, life.end_s);
  }
  double sum = 0, squares = 0;
  for (size_t id = 0; id < report_.projects.size(); ++id) {
    ProjectOutcome& project = report_.projects[id];
    project.mean_completion_s = completions[id] / static_cast<double>(project.jobs);
    project.efficiency = durations[id] / completions[id];
    sum += project.efficiency;
    squares += project.efficiency * project.efficiency;
  }
  const auto projects = static_cast<double>(report_.projects.size());
  report_.jain_index = squares > 0 ? sum * sum / (projects * squares) : 1;
  report_.jobs = static_cast<int64_t>(lives_.size());
  report_.mean_completion_s = mean(completion);
  report_.median_completion_s = quantile(completion, 0.5);
  report_.p99_completion_s = quantile(completion, 0.99);
  report_.mean_queue_s = mean(queue);
  report_.median_queue_s = quantile(queue, 0.5);
  report_.p99_queue_s = quantile(queue, 0.99);
  report_.median_slowdown = quantile(slowdown, 0.5);
  report_.p99_slowdown = quantile(slowdown, 0.99);
  if (report_.makespan_s > 0) {
    report_.utilisation = busy_gpu_s_ / (options_.gpus * report_.makespan_s);
    report_.resume_share = resume_gpu_s_ / busy_gpu_s_;
  }
  report_.decisions = static_cast<int64_t>(decision_us_.size());
  report_.decision_mean_us = mean(decision_us_);
  report_.decision_p99_us = quantile(decision_us_, 0.99);
  return std::move(report_);
}

}  // namespace

SimulationReport simulate(const std::vector<TraceJob>& trace, const SimulationOptions& options) {
  if (options.gpus < 1 || options.gpus > 10'000'000) {
    throw Error(Code::invalid_argument, "a machine of " + std::to_string(options.gpus) + " GPUs",
                "--gpus", "Use 1 to 10000000");
  }
  if (options.gpus_per_host < 1 || options.gpus_per_host > max_devices ||
      options.hosts_per_rack < 1) {
    throw Error(Code::invalid_argument,
                "hosts of " + std::to_string(options.gpus_per_host) + " GPUs, " +
                    std::to_string(options.hosts_per_rack) + " to a rack",
                "", "Use 1 to " + std::to_string(max_devices) + " GPUs and at least one host");
  }
  return Simulation(trace, options).run();
}

}  // namespace dais::jobs
