// Random events against a checker that knows only the events and the decisions, and keeps its own
// books: what every device holds, what every project uses, and how long a project in quota waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "jobs/decision.h"

namespace dais::jobs {
namespace {

constexpr int hosts = 8, devices = 8;

struct Entry {
  ProjectId project;
  Shape shape;
  bool running = false;
  bool stopping = false;
  Placement placement;
  int fewest = 0, most = 0;  // tasks; the shape says how many run
};

class Checker {
 public:
  void submit(JobId id, ProjectId project, const Shape& shape, int most) {
    ASSERT_TRUE(
        jobs.emplace(id, Entry{project, shape, false, false, {}, shape.tasks, most}).second);
  }

  void end(JobId id) {
    ASSERT_TRUE(jobs.contains(id)) << "a job ended twice";
    release(jobs.at(id));
    jobs.erase(id);
  }

  void preempt(JobId id) {
    ASSERT_TRUE(jobs.contains(id) && jobs.at(id).running) << "job " << id;
    ASSERT_TRUE(jobs.at(id).shape.preemptible) << "job " << id;
    release(jobs.at(id));
    jobs.at(id).stopping = true;
  }

  void stopped(JobId id) { jobs.at(id).stopping = false; }

  void start(const Start& start) {
    ASSERT_TRUE(jobs.contains(start.job)) << "job " << start.job << " was lost";
    Entry& entry = jobs.at(start.job);
    ASSERT_FALSE(entry.running || entry.stopping) << "job " << start.job << " runs twice";
    expect_whole_gang(start, entry);
    for (const Slot& slot : start.placement) {
      int64_t& used = held_[{slot.host, slot.device}];
      used += slot.gpu_milli;
      ASSERT_LE(used, whole_gpu) << "host " << slot.host << " device " << slot.device;
    }
    entry.running = true;
    entry.placement = start.placement;
    owed_since_s.erase(entry.project);
    for (ProjectId up = entry.project; up != no_project; up = parent.at(up)) {
      allocated[up] += entry.shape.total().gpu_milli;
      ASSERT_LE(allocated[up], limit.at(up)) << "project " << up << " above its limit";
    }
    if (!entry.shape.preemptible) {
      ASSERT_LE(allocated[entry.project], quota.at(entry.project)) << "lent without return";
    }
  }

  // A project with a waiting job that its quota would hold gets to start one as soon as minimum run
  // times are over. Which one is the policy's choice.
  void check_guarantees(double now_s, double patience_s) {
    std::set<ProjectId> owed;
    for (const auto& [id, entry] : jobs) {
      if (!entry.running && !entry.stopping && within_bounds(entry)) owed.insert(entry.project);
    }
    for (const auto& [project, amount] : quota) {
      if (!owed.contains(project)) {
        owed_since_s.erase(project);
        continue;
      }
      const double since_s = owed_since_s.emplace(project, now_s).first->second;
      ASSERT_LE(now_s - since_s, patience_s)
          << "project " << project << " in quota waits since " << since_s;
    }
  }

  std::map<JobId, Entry> jobs;
  std::map<ProjectId, double> owed_since_s;
  std::map<ProjectId, int64_t> quota, limit, allocated;
  std::map<ProjectId, ProjectId> parent;

 private:
  bool within_bounds(const Entry& entry) {
    const int64_t need = entry.shape.total().gpu_milli;
    if (allocated[entry.project] + need > quota.at(entry.project)) return false;
    for (ProjectId up = entry.project; up != no_project; up = parent.at(up)) {
      if (allocated[up] + need > limit.at(up)) return false;
    }
    return true;
  }

  static void expect_whole_gang(const Start& start, Entry& entry) {
    Shape& shape = entry.shape;
    std::map<int, int64_t> tasks;
    std::map<int, std::set<HostId>> where;
    for (const Slot& slot : start.placement) {
      tasks[slot.task] += slot.gpu_milli;
      where[slot.task].insert(slot.host);
    }
    shape.tasks = static_cast<int>(tasks.size());
    ASSERT_GE(shape.tasks, entry.fewest) << "partial gang";
    ASSERT_LE(shape.tasks, entry.most) << "more than it asked for";
    for (const auto& [task, milli] : tasks) {
      ASSERT_EQ(milli, shape.task.gpu_milli) << "partial task";
      ASSERT_EQ(where[task].size(), 1u) << "task over several hosts";
    }
  }

  void release(Entry& entry) {
    if (!entry.running) return;
    for (const Slot& slot : entry.placement) held_[{slot.host, slot.device}] -= slot.gpu_milli;
    for (ProjectId up = entry.project; up != no_project; up = parent.at(up)) {
      allocated[up] -= entry.shape.total().gpu_milli;
    }
    entry.running = false;
    entry.shape.tasks = entry.fewest;
    entry.placement.clear();
  }

  std::map<std::pair<HostId, int>, int64_t> held_;
};

class Storm {
 public:
  Storm(const char* policy_name, uint64_t seed)
      : policy_(policy_named(policy_name)), snapshot_(prepared(policy_)), random_(seed) {
    for (int i = 0; i < hosts; ++i) {
      Host host;
      host.name = "h" + std::to_string(i);
      host.devices = devices;
      host.rack = static_cast<uint32_t>(i / 4);
      snapshot_.add_host(host);
    }
    const ProjectId lab = add_project(32, 48, no_project);
    leaves_ = {add_project(16, 64, no_project), add_project(8, 16, no_project),
               add_project(0, 64, no_project), add_project(16, 40, lab), add_project(12, 64, lab)};
  }

  void run(int events) {
    for (int event = 0; event < events; ++event) {
      // Most of a crowd waits for the 64 GPUs; of few jobs none does, and some grow.
      crowd_ = event % 1000 < 700 ? 200 : 12;
      one_event();
      settle();
      checker_.check_guarantees(snapshot_.now_s(), policy_.min_run_s + 2 * longest_step_s);
      if (::testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << "at event " << event;
        return;
      }
      if (event % 5000 == 0) snapshot_.verify();
    }
    snapshot_.verify();
    expect_same_jobs();
  }

  uint64_t fingerprint() const { return fingerprint_; }

 private:
  static constexpr double longest_step_s = 20;

  static Policy& prepared(Policy& policy) {
    policy.tenure_wait_s = 600;
    policy.tenure_full_wait_s = 2000;
    policy.half_life_s = 1000;
    policy.grow_after_s = 100;
    return policy;
  }

  ProjectId add_project(int64_t quota_gpus, int64_t limit_gpus, ProjectId parent) {
    Project project;
    project.name = "p" + std::to_string(checker_.quota.size());
    project.parent = parent;
    if (quota_gpus > 0) project.quota = {quota_gpus * whole_gpu, unlimited, unlimited};
    project.limit.gpu_milli = limit_gpus * whole_gpu;
    const ProjectId id = snapshot_.add_project(project);
    checker_.quota[id] = quota_gpus * whole_gpu;
    checker_.limit[id] = limit_gpus * whole_gpu;
    checker_.parent[id] = parent;
    return id;
  }

  int roll(int sides) { return static_cast<int>(random_() % static_cast<uint64_t>(sides)); }

  void one_event() {
    snapshot_.advance(snapshot_.now_s() + longest_step_s * roll(1000) / 1000);
    const int kind = roll(100);
    if (kind < (checker_.jobs.size() < crowd_ ? 70 : 30)) {
      submit();
    } else if (kind < 98) {
      end(kind % 5 != 0);
    } else {
      change_quota();
    }
  }

  // Gangs of single GPUs and halves: whatever is free can hold them, so a guarantee is a guarantee.
  void submit() {
    auto spec = std::make_shared<JobSpec>();
    spec->project = leaves_[static_cast<size_t>(roll(static_cast<int>(leaves_.size())))];
    spec->priority = roll(4) == 0 ? roll(3) - 1 : 0;
    spec->shape.tasks = roll(3) == 0 ? 1 + roll(12) : 1;
    spec->shape.task.gpu_milli = whole_gpu;
    spec->shape.preemptible = roll(6) != 0;
    int most = spec->shape.tasks;
    if (roll(4) == 0) {
      most += roll(20);
      spec->fewest_tasks = spec->shape.tasks;
      spec->most_tasks = most;
    }
    const JobId id = snapshot_.submit(spec);
    checker_.submit(id, spec->project, spec->shape, most);
  }

  void end(bool completed) {
    if (checker_.jobs.empty()) return;
    auto entry = checker_.jobs.lower_bound(random_() % (checker_.jobs.rbegin()->first + 1));
    if (entry == checker_.jobs.end()) return;
    const JobId id = entry->first;
    snapshot_.end(id, completed && entry->second.running);
    checker_.end(id);
  }

  void change_quota() {
    // Children of the lab may hold 16 + 16, the others 16 + 8: never more than the machine.
    const ProjectId id = leaves_[static_cast<size_t>(roll(2)) * 3];
    Project project = *snapshot_.project(id).spec;
    project.quota = {(4 + roll(13)) * whole_gpu, unlimited, unlimited};
    int64_t fixed = 0;
    for (const auto& [job, entry] : checker_.jobs) {
      if (entry.running && entry.project == id && !entry.shape.preemptible) {
        fixed += entry.shape.total().gpu_milli;
      }
    }
    if (fixed > project.quota.gpu_milli) return;
    snapshot_.set_project(id, project);
    checker_.quota[id] = project.quota.gpu_milli;
    checker_.owed_since_s.clear();
  }

  void settle() {
    for (int round = 0; round < 8;) {
      const Decision decision = decide(snapshot_, policy_);
      apply(snapshot_, decision);
      for (const Preemption& preemption : decision.preempt) {
        checker_.preempt(preemption.victim);
        fingerprint_ = fingerprint_ * 1'000'003 + preemption.victim;
      }
      for (const Start& start : decision.start) {
        checker_.start(start);
        fingerprint_ = fingerprint_ * 1'000'003 + start.job * 64 + start.placement[0].host;
      }
      for (const Preemption& preemption : decision.preempt) {
        snapshot_.stopped(preemption.victim);
        checker_.stopped(preemption.victim);
      }
      if (decision.empty() || ::testing::Test::HasFatalFailure()) return;
      round += !decision.more;
    }
  }

  void expect_same_jobs() {
    ASSERT_EQ(snapshot_.jobs().size(), checker_.jobs.size());
    snapshot_.jobs().for_each([this](uint64_t id, const Job& job) {
      ASSERT_TRUE(checker_.jobs.contains(id));
      EXPECT_EQ(job.state == JobState::running, checker_.jobs.at(id).running);
    });
  }

  Policy policy_;
  Snapshot snapshot_;
  std::mt19937_64 random_;
  Checker checker_;
  std::vector<ProjectId> leaves_;
  uint64_t fingerprint_ = 0;
  size_t crowd_ = 0;
};

// DAIS_JOBS_EVENTS asks for more events than the everyday run plays.
int events() {
  const char* asked = std::getenv("DAIS_JOBS_EVENTS");
  return asked ? std::max(1, std::atoi(asked)) : 3000;
}

class JobsRandomEvents : public ::testing::TestWithParam<const char*> {};

TEST_P(JobsRandomEvents, KeepEveryPromise) { Storm(GetParam(), 11).run(events()); }

TEST_P(JobsRandomEvents, SameSeedSameDecisions) {
  Storm first(GetParam(), 5), second(GetParam(), 5);
  first.run(1000);
  second.run(1000);
  EXPECT_EQ(first.fingerprint(), second.fingerprint());
}

INSTANTIATE_TEST_SUITE_P(Policies, JobsRandomEvents,
                         ::testing::Values("default", "priority", "fair", "las"));

}  // namespace
}  // namespace dais::jobs
