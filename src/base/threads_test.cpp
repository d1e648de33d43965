#include "base/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace dais {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

/// The ranges that the body saw, in order of their begin.
Ranges ranges_of(int64_t count, int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(PoolThreads, CoverEveryIndexOnce) {
  for (int team : {1, 2, 3, 4, 7}) {
    set_team_size(team);
    for (int64_t count : {1, 2, 5, 63, 64, 65, 1000}) {
      int64_t next = 0;
      for (auto [begin, end] : ranges_of(count, 1)) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        next = end;
      }
      EXPECT_EQ(next, count) << "team " << team;
    }
  }
}

TEST(PoolThreads, GiveEachChunkAGrainAtLeast) {
  set_team_size(4);
  for (auto [begin, end] : ranges_of(103, 30)) EXPECT_GE(end - begin, 30);
  EXPECT_EQ(ranges_of(103, 30).size(), 3U);
  EXPECT_EQ(ranges_of(1000, 30).size(), 4U);
}

TEST(PoolThreads, StayOnTheCallerBelowTwoGrains) {
  set_team_size(4);
  const auto caller = std::this_thread::get_id();
  parallel_for(59, 30, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 59);
  });
}

TEST(PoolThreads, DoNothingForNothing) {
  parallel_for(0, 1, [](int64_t, int64_t) { FAIL() << "called for an empty range"; });
  parallel_for(-3, 1, [](int64_t, int64_t) { FAIL() << "called for a negative range"; });
}

TEST(PoolThreads, TakeAGrainOfZeroAsOne) {
  set_team_size(2);
  EXPECT_EQ(ranges_of(10, 0), ranges_of(10, 1));
}

TEST(PoolThreads, PartitionAlikeEachTime) {
  set_team_size(3);
  const Ranges first = ranges_of(1001, 7);
  for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(ranges_of(1001, 7), first);
}

TEST(PoolThreads, RunNestedCallsOnTheirOwnThread) {
  set_team_size(2);
  std::atomic<int64_t> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    const auto outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        EXPECT_EQ(inner_end - inner_begin, 100);
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 800);
}

TEST(PoolThreads, ServeSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&sum] {
      set_team_size(2);
      for (int repeat = 0; repeat < 50; ++repeat)
        parallel_for(1000, 10, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 50 * 1000);
}

TEST(PoolThreads, KeepTheirTeamSizePerThread) {
  set_team_size(3);
  EXPECT_EQ(team_size(), 3);
  std::thread([] { EXPECT_EQ(team_size(), usable_cores()); }).join();
  set_team_size(0);
  EXPECT_EQ(team_size(), 1);
}

/// Confines this process to one core and leaves with the number of cores it then counts.
[[noreturn]] void exit_with_cores_of_one_core() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) std::exit(100);
  std::exit(usable_cores());
}

TEST(UsableCores, ObeyTheAffinityMask) {
  // A new process: the count is taken once and kept.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit_with_cores_of_one_core(), testing::ExitedWithCode(1), "");
}

TEST(UsableCores, AreOneAtLeastAndNoMoreThanTheMachineHas) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace dais
