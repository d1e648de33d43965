#include "jobs/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"

namespace dais::jobs {
namespace {

class JobsStore : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "dais_store_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    path = folder + "/jobs.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string folder, path;
};

template <typename Call>
Code code_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::internal;
}

TEST_F(JobsStore, KeepsJobsAndEventsOverAReopen) {
  {
    Store store(path);
    const auto accepted = store.submit({{"a", "{}"}, {"b", "{\"x\":1}"}}, 10);
    EXPECT_EQ(accepted[0].job, 1);
    EXPECT_EQ(accepted[1].job, 2);
    store.move({{1, Phase::starting, "host 0"}, {2, Phase::cancelled, "by user"}}, 11);
    store.move({{1, Phase::running, ""}}, 12);
  }
  Store store(path);
  const auto open = store.open_jobs();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].key, "a");
  EXPECT_EQ(open[0].phase, Phase::running);
  EXPECT_EQ(open[0].attempts, 1);
  EXPECT_EQ(store.job(2)->spec, "{\"x\":1}");
  EXPECT_EQ(store.job(2)->phase, Phase::cancelled);
  EXPECT_FALSE(store.job(3));
  const auto events = store.events_after(2, 10);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, "starting");
  EXPECT_EQ(events[0].detail, "host 0");
  EXPECT_EQ(events[2].at_s, 12);
}

TEST_F(JobsStore, MetricsAreThinnedOutAndUsageIsSummed) {
  Store store(path);
  for (int64_t at = 1'000'000 / fine_s * fine_s; at < 1'003'000; at += fine_s) {
    store.add_metrics({{fine_s, at, 0, "utilisation", at % 20 == 0 ? 0.0 : 1.0}}, at);
  }
  const auto coarse = store.metrics(0, "utilisation", coarse_s, 1'000'800, 1'002'700);
  ASSERT_GE(coarse.size(), 3u);
  for (const MetricRow& row : coarse) EXPECT_EQ(row.value, 0.5) << row.at_s;
  store.add_metrics({{fine_s, 1'100'000, 0, "utilisation", 1}}, 1'100'000);
  EXPECT_EQ(store.metrics(0, "utilisation", fine_s, 0, 1'050'000).size(), 0u);
  EXPECT_GE(store.metrics(0, "utilisation", coarse_s, 0, 1'050'000).size(), 3u);
  UsageRow row;
  row.project = "a";
  for (int i = 0; i < 3; ++i) {
    row.job = i;
    row.end_s = 100'000.0 * i;
    row.held_s = 10;
    row.idle_s = i;
    row.failed = i == 1;
    if (i == 2) row.energy_j = 5;
    store.add_usage(row);
  }
  const auto sums = store.usage("a", 0, 150'000);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[1].day, 1);
  EXPECT_EQ(sums[1].failed_s, 10);
  EXPECT_FALSE(sums[1].energy_j);
  EXPECT_EQ(store.usage("", 150'000, 1e9)[0].energy_j, 5.0);
  EXPECT_TRUE(store.usage("b", 0, 1e9).empty());
}

TEST_F(JobsStore, AKeySubmittedTwiceIsOneJob) {
  Store store(path);
  const auto first = store.submit({{"same", "{}"}}, 1);
  const auto again = store.submit({{"same", "{}"}, {"other", "{}"}}, 2);
  EXPECT_EQ(again[0].job, first[0].job);
  EXPECT_TRUE(first[0].fresh && !again[0].fresh && again[1].fresh);
  EXPECT_EQ(store.open_jobs().size(), 2u);
}

TEST_F(JobsStore, ASubmissionAndWhatFollowsFromItAreOneCommit) {
  Store store(path);
  const auto starts = [](Phase to) {
    return [to](const std::vector<Store::Accepted>& jobs) {
      return std::vector<Transition>{{jobs[0].job, to, "", "[place]"}};
    };
  };
  const int64_t job = store.submit({{"a", "{}"}}, 1, starts(Phase::starting))[0].job;
  EXPECT_EQ(store.job(job)->phase, Phase::starting);
  EXPECT_EQ(store.job(job)->placement, "[place]");
  EXPECT_EQ(store.events_of(job).size(), 2u);
  // What the table does not hold takes the submission with it.
  EXPECT_EQ(code_of([&] {
              store.submit({{"b", "{}"}}, 2, starts(Phase::completed));
            }),
            Code::invalid_argument);
  EXPECT_EQ(store.open_jobs().size(), 1u);
}

TEST_F(JobsStore, RefusesWhatTheTableDoesNotHoldAndChangesNothing) {
  Store store(path);
  store.submit({{"a", "{}"}, {"b", "{}"}}, 1);
  EXPECT_EQ(code_of([&] {
              store.move({{1, Phase::starting, ""}, {2, Phase::completed, ""}}, 2);
            }),
            Code::invalid_argument);
  EXPECT_EQ(store.job(1)->phase, Phase::waiting);
  EXPECT_EQ(code_of([&] { store.move({{9, Phase::starting, ""}}, 2); }), Code::not_found);
  EXPECT_EQ(store.events_after(0, 100).size(), 2u);
}

TEST_F(JobsStore, NothingFollowsAnEnd) {
  for (Phase from : {Phase::completed, Phase::failed, Phase::cancelled}) {
    for (Phase to : {Phase::waiting, Phase::starting, Phase::running, Phase::stopping,
                     Phase::completed, Phase::failed, Phase::cancelled}) {
      EXPECT_FALSE(may_follow(from, to));
    }
  }
}

TEST_F(JobsStore, RefusesAFileOfANewerVersion) {
  { Store store(path); }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version = 99", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ(code_of([&] { Store store(path); }), Code::unsupported);
  EXPECT_EQ(code_of([&] { Store store(folder + "/none/jobs.db"); }), Code::unavailable);
}

TEST_F(JobsStore, AFullDiskStillTakesTransitionsAndRefusesSubmissions) {
  Store store(path);
  store.submit({{"a", "{}"}}, 1);
  store.limit_pages(16);
  const std::string large(20'000, 'x');
  int accepted = 0;
  EXPECT_EQ(code_of([&] {
              for (;; ++accepted) store.submit({{std::to_string(accepted), large}}, 2);
            }),
            Code::exhausted);
  EXPECT_EQ(store.open_jobs().size(), static_cast<size_t>(accepted) + 1);
  store.move({{1, Phase::starting, std::string(60'000, 'y')}}, 3);
  EXPECT_TRUE(store.degraded());
  EXPECT_EQ(store.job(1)->phase, Phase::starting);
  EXPECT_EQ(code_of([&] { store.submit({{"late", "{}"}}, 4); }), Code::exhausted);
  EXPECT_TRUE(store.recover());
  EXPECT_EQ(store.submit({{"late", "{}"}}, 5).size(), 1u);
}

// Restarts after kills must not fill a disk, least of all a full one.
TEST_F(JobsStore, OpeningItWritesNothingAndEmptiesTheLogOfWhoWasKilled) {
  { Store store(path); }
  for (int kill = 0; kill < 5; ++kill) {
    const pid_t child = fork();
    if (child == 0) {
      Store store(path);
      if (kill == 0) store.submit({{"a", "{}"}}, 1);
      _exit(0);  // without closing it
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const auto log = std::filesystem::file_size(path + "-wal");
    EXPECT_EQ(log > 0, kill == 0) << log << " bytes after kill " << kill;
  }
  Store store(path);
  EXPECT_EQ(store.open_jobs().size(), 1u);
}

// A child submits and tells each id it was given; it is killed at a random moment.
void submit_until_killed(const std::string& path, int told, int round) {
  Store store(path);
  for (int i = 0;; ++i) {
    const std::string key = std::to_string(round) + "/" + std::to_string(i);
    const int64_t id = store.submit({{key, "{}"}}, i)[0].job;
    if (write(told, &id, sizeof id) != sizeof id) _exit(1);
  }
}

TEST_F(JobsStore, WhatWasAcknowledgedSurvivesAKill) {
  std::mt19937 random(4);
  for (int round = 0; round < 10; ++round) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(told[0]);
      try {
        submit_until_killed(path, told[1], round);
      } catch (...) {
      }
      _exit(1);
    }
    close(told[1]);
    int64_t id = 0;
    std::vector<int64_t> acknowledged;
    const size_t enough = 1 + random() % 20;
    while (acknowledged.size() < enough && read(told[0], &id, sizeof id) == sizeof id) {
      acknowledged.push_back(id);
    }
    usleep(random() % 3000);
    kill(child, SIGKILL);
    while (read(told[0], &id, sizeof id) == sizeof id) acknowledged.push_back(id);
    close(told[0]);
    waitpid(child, nullptr, 0);
    ASSERT_GE(acknowledged.size(), enough);
    Store store(path);
    for (int64_t known : acknowledged) ASSERT_TRUE(store.job(known)) << known;
  }
}

}  // namespace
}  // namespace dais::jobs
