// How long a decision takes on a large machine with a long queue: a job ends, one is submitted, and
// decide() says what starts. Usage: decide_bench [HOSTS [QUEUED [EVENTS [QUOTAS]]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/error.h"
#include "jobs/decision.h"

namespace dais::jobs {
namespace {

constexpr int devices = 8, hosts_per_rack = 32, departments = 10, projects_each = 10;

class Bench {
 public:
  Bench(int hosts, bool quotas) : snapshot_(policy_) {
    for (int i = 0; i < hosts; ++i) {
      Host host;
      host.devices = devices;
      host.island_size = 4;
      host.rack = static_cast<uint32_t>(i / hosts_per_rack);
      host.cpu_milli = 64'000;
      host.memory_mib = 512 << 10;
      snapshot_.add_host(host);
    }
    const int64_t part = quotas ? int64_t{hosts} * devices * whole_gpu * 3 / 4 : 0;
    for (int i = 0; i < departments; ++i) {
      const ProjectId parent = add_project("department", no_project, part / departments);
      for (int j = 0; j < projects_each; ++j) {
        projects_.push_back(add_project("team", parent, part / departments / projects_each));
      }
    }
  }

  void submit() {
    static constexpr int sizes[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32, 64};
    const int gpus = sizes[random_() % std::size(sizes)];
    auto spec = std::make_shared<JobSpec>();
    spec->project = projects_[random_() % projects_.size()];
    spec->priority = static_cast<int32_t>(random_() % 3);
    // Whole hosts for the large ones; one task with all its GPUs on one host for the others.
    spec->shape.tasks = std::max(1, gpus / devices);
    const int per_task = std::min(gpus, devices);
    spec->shape.task = {per_task * whole_gpu, per_task * 8000, per_task * 32'768};
    snapshot_.submit(std::move(spec));
  }

  int64_t fill() {
    int64_t placed = 0;
    while (true) {
      const Decision decision = decide(snapshot_, policy_);
      if (decision.start.empty()) return placed;
      play(decision);
      placed += static_cast<int64_t>(decision.start.size());
    }
  }

  void end_one() {
    if (running_.empty()) return;
    const size_t pick = random_() % running_.size();
    std::swap(running_[pick], running_.back());
    const JobId id = running_.back();
    running_.pop_back();
    if (!snapshot_.jobs().contains(id) || snapshot_.jobs().at(id).state != JobState::running)
      return;
    snapshot_.end(id, true);
  }

  void play(const Decision& decision) {
    apply(snapshot_, decision);
    for (const JobId id : decision.promote) digest(id);
    for (const Preemption& preemption : decision.preempt) {
      digest(preemption.victim);
      digest(preemption.beneficiary);
    }
    for (const Start& start : decision.start) {
      digest(start.job);
      digest(static_cast<uint64_t>(start.standing));
      for (const Slot& slot : start.placement) {
        digest((uint64_t{slot.host} << 32) | (static_cast<uint64_t>(slot.device) << 16) |
               static_cast<uint64_t>(slot.task));
      }
    }
    for (const Preemption& preemption : decision.preempt) snapshot_.stopped(preemption.victim);
    for (const Start& start : decision.start) running_.push_back(start.job);
    preemptions_ += static_cast<int64_t>(decision.preempt.size());
  }

  void events(int count) {
    snapshot_.advance(snapshot_.now_s() + 600);  // minimum run times are over
    using Clock = std::chrono::steady_clock;
    std::vector<double> decide_us, cycle_us;
    int64_t starts = 0;
    double total_us = 0;
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      snapshot_.advance(snapshot_.now_s() + 0.05);
      end_one();
      submit();
      const Snapshot seen = snapshot_;  // kept for replay, so that the decision works on a copy
      const auto before = Clock::now();
      const Decision decision = decide(seen, policy_);
      const auto after = Clock::now();
      play(decision);
      const auto end = Clock::now();
      decide_us.push_back(std::chrono::duration<double, std::micro>(after - before).count());
      cycle_us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
      total_us += cycle_us.back();
      starts += static_cast<int64_t>(decision.start.size());
    }
    print("decide", decide_us);
    print("whole cycle", cycle_us);
    std::printf("%-12s %lld placements, %.0f/s, %lld preemptions\n", "events",
                static_cast<long long>(starts), static_cast<double>(starts) / total_us * 1e6,
                static_cast<long long>(preemptions_));
    std::printf("%-12s %016llx\n", "decisions", static_cast<unsigned long long>(digest_));
  }

 private:
  // Of everything decided, in order: two programs that decide alike print the same.
  void digest(uint64_t value) {
    digest_ = (digest_ ^ value) * 0x9e3779b97f4a7c15 + (digest_ >> 29);
  }

  ProjectId add_project(const char* name, ProjectId parent, int64_t quota_milli) {
    Project project;
    project.name = name;
    project.parent = parent;
    if (quota_milli > 0) project.quota = {quota_milli, unlimited, unlimited};
    return snapshot_.add_project(project);
  }

  static void print(const char* name, std::vector<double>& us) {
    std::sort(us.begin(), us.end());
    auto at = [&us](double part) { return us[static_cast<size_t>(part * (us.size() - 1))]; };
    std::printf("%-12s p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n", name, at(0.5),
                at(0.99), at(0.999), us.back());
  }

  Policy policy_;
  Snapshot snapshot_;
  std::mt19937_64 random_{1};
  std::vector<ProjectId> projects_;
  std::vector<JobId> running_;
  int64_t preemptions_ = 0;
  uint64_t digest_ = 0;
};

int run(int hosts, int queued, int count, bool quotas) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  Bench bench(hosts, quotas);
  auto begin = Clock::now();
  for (int i = 0; i < queued; ++i) bench.submit();
  std::printf("%-12s %d jobs in %.2f s\n", "submitted", queued, seconds(begin));
  begin = Clock::now();
  const int64_t placed = bench.fill();
  std::printf("%-12s %lld jobs in %.2f s, %.0f/s\n", "placed", static_cast<long long>(placed),
              seconds(begin), static_cast<double>(placed) / seconds(begin));
  bench.events(count);
  return 0;
}

}  // namespace
}  // namespace dais::jobs

int main(int argc, char** argv) {
  auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  try {
    return dais::jobs::run(number(1, 10'000), number(2, 1'000'000), number(3, 20'000),
                           number(4, 0) != 0);
  } catch (const dais::Error& error) {
    std::fprintf(stderr, "decide_bench: %s\n", error.what());
    return 2;
  }
}
