#include <gtest/gtest.h>

#include "jobs/decision.h"

namespace dais::jobs {
namespace {

// A small machine with one call per event; every decision is applied and its victims stop at once.
class Machine {
 public:
  explicit Machine(const char* policy_name, int hosts = 2, int devices = 8)
      : policy(policy_named(policy_name)), snapshot(policy) {
    for (int host = 0; host < hosts; ++host) {
      Host machine;
      machine.name = "h" + std::to_string(host);
      machine.rack = static_cast<uint32_t>(host / 2);
      machine.devices = devices;
      machine.island_size = 4;
      snapshot.add_host(machine);
    }
  }

  ProjectId project(int64_t quota_gpus = 0, int64_t limit_gpus = 1'000'000,
                    ProjectId parent = no_project) {
    Project spec;
    spec.name = "p" + std::to_string(snapshot.projects().size());
    spec.parent = parent;
    if (quota_gpus > 0) spec.quota = {quota_gpus * whole_gpu, unlimited, unlimited};
    spec.limit.gpu_milli = limit_gpus * whole_gpu;
    return snapshot.add_project(spec);
  }

  JobId submit(ProjectId project, int tasks, int64_t gpu_milli = whole_gpu, int32_t priority = 0,
               bool preemptible = true) {
    auto spec = std::make_shared<JobSpec>();
    spec->project = project;
    spec->priority = priority;
    spec->shape = {tasks, {gpu_milli, 0, 0}, preemptible};
    return snapshot.submit(spec);
  }

  JobId submit_elastic(ProjectId project, int fewest, int most) {
    auto spec = std::make_shared<JobSpec>();
    spec->project = project;
    spec->shape = {fewest, {whole_gpu, 0, 0}, true};
    spec->fewest_tasks = fewest;
    spec->most_tasks = most;
    return snapshot.submit(spec);
  }
  int tasks(JobId id) const { return running(id) ? tasks_in(place(id)) : 0; }

  void settle() {
    for (int round = 0; round < 8; ++round) {
      const Decision decision = decide(snapshot, policy);
      apply(snapshot, decision);
      for (const Preemption& preemption : decision.preempt) snapshot.stopped(preemption.victim);
      snapshot.verify();
      if (decision.empty()) return;
    }
  }

  void pass_time(double seconds) { snapshot.advance(snapshot.now_s() + seconds); }
  bool running(JobId id) const { return snapshot.jobs().at(id).state == JobState::running; }
  const Placement& place(JobId id) const { return *snapshot.jobs().at(id).placement; }

  Policy policy;
  Snapshot snapshot;
};

std::vector<HostId> hosts_of(const Placement& placement) {
  std::vector<HostId> hosts;
  for (const Slot& slot : placement) {
    if (hosts.empty() || hosts.back() != slot.host) hosts.push_back(slot.host);
  }
  return hosts;
}

TEST(JobsDecide, GangsStartWholeOrNotAtAll) {
  Machine m("default");
  const ProjectId p = m.project();
  const JobId small = m.submit(p, 10), gang = m.submit(p, 16, whole_gpu, -1);
  m.settle();
  EXPECT_TRUE(m.running(small));
  EXPECT_FALSE(m.running(gang));
  m.snapshot.end(small, true);
  m.settle();
  ASSERT_TRUE(m.running(gang));
  EXPECT_EQ(m.place(gang).size(), 16u);
}

TEST(JobsDecide, PacksTightlyAndKeepsGangsTogether) {
  Machine m("fifo", 4);
  const ProjectId p = m.project();
  const JobId one = m.submit(p, 1), four = m.submit(p, 4), eight = m.submit(p, 8);
  const JobId rack = m.submit(p, 12);
  m.settle();
  EXPECT_EQ(m.place(one)[0].host, m.place(four)[0].host);
  EXPECT_EQ(hosts_of(m.place(eight)).size(), 1u);
  EXPECT_EQ(hosts_of(m.place(rack)).size(), 2u);
  // The gang of four has an island to itself although one device of the host was taken.
  const int island = m.place(four)[0].device / 4;
  for (const Slot& slot : m.place(four)) EXPECT_EQ(slot.device / 4, island);
}

TEST(JobsDecide, FractionsShareTheTightestDevice) {
  Machine m("fifo", 1, 2);
  const ProjectId p = m.project();
  const JobId a = m.submit(p, 1, 600), b = m.submit(p, 1, 300), c = m.submit(p, 1, 400);
  m.settle();
  EXPECT_EQ(m.place(a)[0].device, m.place(b)[0].device);
  EXPECT_NE(m.place(a)[0].device, m.place(c)[0].device);
  const JobId whole = m.submit(p, 1);
  m.settle();
  EXPECT_FALSE(m.running(whole));
}

TEST(JobsDecide, AnElasticJobTakesWhatIsLeftShrinksForOthersAndGrowsAgain) {
  Machine m("default");
  const ProjectId p = m.project();
  const JobId elastic = m.submit_elastic(p, 2, 32), rigid = m.submit(p, 4);
  m.settle();
  EXPECT_TRUE(m.running(rigid));
  EXPECT_EQ(m.tasks(elastic), 12);
  m.pass_time(100);
  const JobId high = m.submit(p, 10, whole_gpu, 1);
  m.settle();
  EXPECT_TRUE(m.running(high));
  EXPECT_EQ(m.tasks(elastic), 2);
  m.snapshot.end(high, true);
  m.settle();
  EXPECT_EQ(m.tasks(elastic), 2);  // to start again costs: not at once
  m.pass_time(m.policy.grow_after_s);
  m.settle();
  EXPECT_EQ(m.tasks(elastic), 12);
  EXPECT_TRUE(m.running(rigid));
  m.snapshot.end(elastic, true);
  m.snapshot.verify();
}

TEST(JobsDecide, AnElasticJobKeepsToTheLimitOfItsProject) {
  Machine m("fair");
  const JobId elastic = m.submit_elastic(m.project(0, 5), 2, 32);
  m.settle();
  EXPECT_EQ(m.tasks(elastic), 5);
  m.pass_time(m.policy.grow_after_s);
  m.settle();
  EXPECT_EQ(m.snapshot.jobs().at(elastic).attempts, 1);
}

TEST(JobsDecide, ScatteredJobsMoveTogetherForOneThatNeedsAWholeHost) {
  Machine m("default");
  const ProjectId p = m.project();
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(m.submit(p, 1, 4 * whole_gpu));
  m.settle();
  ASSERT_EQ(m.place(jobs[0])[0].host, m.place(jobs[1])[0].host);
  m.snapshot.end(jobs[1], true);
  m.snapshot.end(jobs[3], true);
  const JobId big = m.submit(p, 1, 8 * whole_gpu);
  m.settle();
  EXPECT_FALSE(m.running(big));  // those that run have their minimum time
  m.pass_time(m.policy.min_run_s + 1);
  m.settle();
  EXPECT_TRUE(m.running(big));
  EXPECT_TRUE(m.running(jobs[0]));
  EXPECT_TRUE(m.running(jobs[2]));
  EXPECT_EQ(m.place(jobs[0])[0].host, m.place(jobs[2])[0].host);
}

TEST(JobsDecide, NobodyMovesWhoWouldFindNoOtherPlace) {
  Machine m("default", 2, 8);
  const ProjectId p = m.project();
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(m.submit(p, 1, (i % 2 ? 2 : 6) * whole_gpu));
  m.settle();
  m.snapshot.end(jobs[1], true);
  m.snapshot.end(jobs[3], true);
  const JobId four = m.submit(p, 1, 4 * whole_gpu, -1);
  m.pass_time(m.policy.min_run_s + 1);
  m.settle();
  EXPECT_FALSE(m.running(four));
  EXPECT_EQ(m.snapshot.jobs().at(jobs[0]).attempts, 1);
  EXPECT_EQ(m.snapshot.jobs().at(jobs[2]).attempts, 1);
}

TEST(JobsDecide, QuotaIsLentAndReclaimed) {
  Machine m("default");
  const ProjectId lender = m.project(8), borrower = m.project(8);
  std::vector<JobId> borrowed;
  for (int i = 0; i < 4; ++i) borrowed.push_back(m.submit(borrower, 4));
  m.settle();
  for (JobId id : borrowed) EXPECT_TRUE(m.running(id));
  m.pass_time(100);
  const JobId owed = m.submit(lender, 8);
  m.settle();
  EXPECT_TRUE(m.running(owed));
  int still = 0;
  for (JobId id : borrowed) still += m.running(id);
  EXPECT_EQ(still, 2);
  // What lies within the borrower's quota is safe from any priority of others.
  m.pass_time(100);
  const JobId urgent = m.submit(lender, 8, whole_gpu, 1000);
  m.settle();
  still = 0;
  for (JobId id : borrowed) still += m.running(id);
  EXPECT_EQ(still, 2);
  EXPECT_TRUE(m.running(urgent));
  EXPECT_FALSE(m.running(owed));
}

TEST(JobsDecide, GuaranteedGangIsNotStarvedByShortProtectedJobs) {
  Machine m("default");
  const ProjectId owner = m.project(16), guest = m.project();
  m.policy.min_run_s = 60;
  for (int i = 0; i < 16; ++i) {
    m.submit(guest, 1);
    m.settle();
    m.pass_time(10);
  }
  const JobId gang = m.submit(owner, 16);
  for (int step = 0; step < 12 && !m.running(gang); ++step) {
    m.submit(guest, 1);
    m.settle();
    m.pass_time(10);
  }
  EXPECT_TRUE(m.running(gang));
}

TEST(JobsDecide, NestedProjectsShareTheirParentsQuotaFirst) {
  Machine m("default");
  const ProjectId lab = m.project(8), other = m.project(8);
  const ProjectId a = m.project(4, 1000, lab), b = m.project(4, 1000, lab);
  const JobId in_lab = m.submit(a, 8), in_other = m.submit(other, 8);
  m.settle();
  EXPECT_TRUE(m.running(in_lab));
  EXPECT_TRUE(m.running(in_other));
  m.pass_time(100);
  // The lab is within its quota, so its sister cannot take from it, but its own child can.
  const JobId more = m.submit(other, 4, whole_gpu, -1);
  m.settle();
  EXPECT_TRUE(m.running(in_lab));
  EXPECT_FALSE(m.running(more));
  const JobId owed = m.submit(b, 4);
  m.settle();
  EXPECT_TRUE(m.running(owed));
  EXPECT_FALSE(m.running(in_lab));
  EXPECT_TRUE(m.running(in_other));
}

TEST(JobsDecide, LimitsHoldForEveryAncestor) {
  Machine m("priority");
  const ProjectId lab = m.project(0, 6), team = m.project(0, 100, lab);
  const JobId first = m.submit(team, 4), second = m.submit(team, 4);
  m.settle();
  EXPECT_TRUE(m.running(first));
  EXPECT_FALSE(m.running(second));
  EXPECT_EQ(why(m.snapshot, m.policy, second).refusal, Refusal::limit);
}

TEST(JobsDecide, WhatCannotBePreemptedNeedsQuota) {
  Machine m("default");
  const ProjectId p = m.project(4);
  const JobId fixed = m.submit(p, 8, whole_gpu, 0, false);
  const JobId small = m.submit(p, 4, whole_gpu, 0, false);
  m.settle();
  EXPECT_FALSE(m.running(fixed));
  EXPECT_TRUE(m.running(small));
  EXPECT_EQ(why(m.snapshot, m.policy, fixed).refusal, Refusal::quota);
}

TEST(JobsDecide, HigherPriorityTakesTheLeastItNeeds) {
  for (const char* name : {"priority", "fair"}) {
    Machine m(name, 1);
    const ProjectId p = m.project();
    const JobId six = m.submit(p, 6), two = m.submit(p, 2);
    m.settle();
    m.pass_time(100);
    const JobId urgent = m.submit(p, 2, whole_gpu, 10);
    m.settle();
    EXPECT_TRUE(m.running(urgent)) << name;
    EXPECT_TRUE(m.running(six)) << name;
    EXPECT_FALSE(m.running(two)) << name;
  }
}

TEST(JobsDecide, MinimumRunTimeProtects) {
  Machine m("priority", 1);
  const ProjectId p = m.project();
  const JobId low = m.submit(p, 8);
  m.settle();
  m.pass_time(30);
  const JobId high = m.submit(p, 8, whole_gpu, 5);
  m.settle();
  EXPECT_TRUE(m.running(low));
  m.pass_time(31);
  m.settle();
  EXPECT_TRUE(m.running(high));
}

TEST(JobsDecide, FifoHoldsEverybodyBehindTheOldest) {
  Machine m("fifo", 1);
  const ProjectId p = m.project();
  m.submit(p, 6);
  const JobId head = m.submit(p, 4), behind = m.submit(p, 1);
  m.settle();
  EXPECT_FALSE(m.running(head));
  EXPECT_FALSE(m.running(behind));
  EXPECT_EQ(why(m.snapshot, m.policy, behind).refusal, Refusal::not_tried);
  EXPECT_EQ(why(m.snapshot, m.policy, head).refusal, Refusal::room);
}

TEST(JobsDecide, BackfilledJobsYieldToTheGangTheyOvertook) {
  Machine m("priority", 1);
  const ProjectId p = m.project();
  const JobId first = m.submit(p, 6), gang = m.submit(p, 8);
  const JobId filler = m.submit(p, 2);
  const JobId rigid = m.submit(p, 1, whole_gpu, 0, false);
  m.settle();
  EXPECT_TRUE(m.running(filler));
  EXPECT_EQ(m.snapshot.jobs().at(filler).standing, Standing::backfilled);
  EXPECT_EQ(why(m.snapshot, m.policy, rigid).refusal, Refusal::reserved);
  m.pass_time(100);
  m.snapshot.end(first, true);
  m.settle();
  EXPECT_TRUE(m.running(gang));
  EXPECT_FALSE(m.running(filler));
}

TEST(JobsDecide, FairServesTheSmallestDominantShare) {
  Machine m("fair", 1);
  const ProjectId a = m.project(), b = m.project();
  std::vector<JobId> from_a, from_b;
  for (int i = 0; i < 8; ++i) from_a.push_back(m.submit(a, 1));
  for (int i = 0; i < 8; ++i) from_b.push_back(m.submit(b, 1));
  m.settle();
  EXPECT_EQ(m.snapshot.project(a).running, 4);
  EXPECT_EQ(m.snapshot.project(b).running, 4);
}

TEST(JobsDecide, OldJobsBecomeTenuredAndKeepTheirPlace) {
  Machine m("default", 1);
  m.policy.tenure_wait_s = m.policy.tenure_full_wait_s = 1000;
  m.snapshot = Snapshot(m.policy);
  Host host;
  host.devices = 8;
  m.snapshot.add_host(host);
  const ProjectId p = m.project();
  const JobId old = m.submit(p, 4);
  m.settle();
  m.pass_time(100'000);
  for (int i = 0; i < 2; ++i) m.submit(p, 4);
  m.settle();
  m.pass_time(100);
  const JobId urgent = m.submit(p, 8, whole_gpu, 1);
  m.settle();
  EXPECT_TRUE(m.running(urgent));
  EXPECT_FALSE(m.running(old));
  m.pass_time(2000);
  m.snapshot.end(urgent, false);
  m.settle();
  ASSERT_TRUE(m.running(old));
  EXPECT_EQ(m.snapshot.jobs().at(old).standing, Standing::tenured);
  EXPECT_EQ(m.snapshot.tenured_gpu_milli(), 4 * whole_gpu);
}

TEST(JobsDecide, ForecastsAStartFromWhatRuns) {
  Machine m("fifo", 1);
  const ProjectId p = m.project();
  auto limited = std::make_shared<JobSpec>();
  limited->project = p;
  limited->shape = {8, {whole_gpu, 0, 0}, true};
  limited->time_limit_s = 100;
  const JobId running = m.snapshot.submit(limited);
  m.settle();
  ASSERT_TRUE(m.running(running));
  const JobId next = m.submit(p, 4), later = m.submit(p, 8);
  m.pass_time(40);
  const Reason reason = why(m.snapshot, m.policy, next);
  ASSERT_TRUE(reason.expected_wait_s);
  // Half of such jobs end within what is left of the limit, or the limit does it.
  EXPECT_LE(*reason.expected_wait_s, 60);
  EXPECT_GT(*reason.expected_wait_s, 0);
  EXPECT_NE(reason.text.find("expected to start in about"), std::string::npos) << reason.text;
  // The four ahead of it and its own eight are more than runs.
  EXPECT_FALSE(why(m.snapshot, m.policy, m.submit(p, 8)).expected_wait_s);
  EXPECT_TRUE(why(m.snapshot, m.policy, later).expected_wait_s);
}

TEST(JobsDecide, SaysWhatCanNeverRun) {
  Machine m("default", 2);
  const ProjectId p = m.project();
  const JobId wide = m.submit(p, 1, 16 * whole_gpu);
  const Reason reason = why(m.snapshot, m.policy, wide);
  EXPECT_EQ(reason.refusal, Refusal::impossible);
  EXPECT_NE(reason.text.find("16 GPUs"), std::string::npos);
  EXPECT_THROW(why(m.snapshot, m.policy, 99), Error);
}

TEST(JobsDecide, ClosedHostsAndDevicesGetNothingNew) {
  Machine m("fifo", 2, 2);
  const ProjectId p = m.project();
  m.snapshot.set_host_open(0, false);
  m.snapshot.set_device_open(1, 0, false);
  const JobId a = m.submit(p, 1), b = m.submit(p, 1);
  m.settle();
  ASSERT_TRUE(m.running(a));
  EXPECT_EQ(m.place(a)[0].host, 1u);
  EXPECT_EQ(m.place(a)[0].device, 1);
  EXPECT_FALSE(m.running(b));
  m.snapshot.set_host_open(0, true);
  m.settle();
  EXPECT_TRUE(m.running(b));
}

TEST(JobsDecide, RefusesWrongSpecifications) {
  Machine m("default");
  const ProjectId p = m.project(8);
  EXPECT_THROW(m.submit(p, 0), Error);
  EXPECT_THROW(m.submit(p, 1, 1500), Error);
  EXPECT_THROW(m.submit(p, 1, -1), Error);
  EXPECT_THROW(m.submit(p, 1, whole_gpu, 1001), Error);
  EXPECT_THROW(m.submit(77, 1), Error);
  EXPECT_THROW(m.project(9, 1000, p), Error);
  EXPECT_THROW(m.project(9, 8), Error);
  EXPECT_THROW(policy_named("fiffo"), Error);
  EXPECT_THROW(m.snapshot.end(1234, true), Error);
}

TEST(JobsDecide, ADecisionCutShortSaysSoAndTheNextGoesOn) {
  Machine m("default", 16);
  const ProjectId p = m.project();
  std::vector<JobId> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(m.submit(p, 1));
  int decisions = 0;
  for (bool more = true; more; ++decisions) {
    const Decision decision = decide(m.snapshot, m.policy);
    EXPECT_LE(static_cast<int>(decision.start.size()), m.policy.max_starts);
    apply(m.snapshot, decision);
    more = decision.more;
  }
  EXPECT_GT(decisions, 1);
  for (const JobId id : jobs) EXPECT_TRUE(m.running(id)) << id;
  EXPECT_FALSE(decide(m.snapshot, m.policy).more);
}

TEST(JobsDecide, RoomIsCountedForWholeDevicesFractionsAndNone) {
  Machine m("fifo", 2, 4);
  const ProjectId p = m.project();
  m.submit(p, 1, 600);
  m.submit(p, 3);
  m.settle();
  const Capacity& capacity = m.snapshot.capacity();
  EXPECT_EQ(capacity.room({100, {whole_gpu, 0, 0}}), 4);
  EXPECT_EQ(capacity.room({3, {whole_gpu, 0, 0}}), 3);
  EXPECT_EQ(capacity.room({100, {2 * whole_gpu, 0, 0}}), 2);
  EXPECT_EQ(capacity.room({100, {400, 0, 0}}), 9);
  EXPECT_EQ(capacity.room({100, {0, uncounted / 4, 0}}), 8);
  m.snapshot.set_host_open(1, false);
  EXPECT_EQ(capacity.room({100, {400, 0, 0}}), 1);
}

TEST(JobsDecide, LeavesTheSnapshotItWasGivenAlone) {
  Machine m("default");
  const ProjectId p = m.project();
  const JobId id = m.submit(p, 8);
  const Snapshot before = m.snapshot;
  const Decision first = decide(before, m.policy), second = decide(before, m.policy);
  EXPECT_EQ(first, second);
  m.settle();
  EXPECT_TRUE(m.running(id));
  EXPECT_EQ(before.jobs().at(id).state, JobState::waiting);
  EXPECT_EQ(before.capacity().gpu_free(), 16 * whole_gpu);
  before.verify();
}

}  // namespace
}  // namespace dais::jobs
