#include "jobs/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

class JobsJournal : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dais_journal_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Some hours of a busy machine.
  void live(uint64_t seed) {
    const Policy policy;
    Snapshot snapshot(policy);
    Journal journal(snapshot, folder_ / "cycles", policy);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 4; ++i) {
      Host host;
      host.devices = 4;
      journal.add_host(host);
    }
    Project project;
    project.name = "owner";
    project.quota = {6 * whole_gpu, unlimited, unlimited};
    const ProjectId owner = journal.add_project(project);
    project = {};
    project.name = "guest";
    const ProjectId guest = journal.add_project(project);
    for (int event = 0; event < 300; ++event) {
      journal.advance(snapshot.now_s() + static_cast<double>(random() % 1000) / 7);
      auto spec = std::make_shared<JobSpec>();
      spec->project = random() % 3 == 0 ? owner : guest;
      spec->priority = static_cast<int32_t>(random() % 2);
      spec->shape = {1 + static_cast<int32_t>(random() % 4), {whole_gpu, 100, 10}, true};
      journal.submit(spec);
      end_some(snapshot, journal, random);
      const Decision decision = journal.decide(policy);
      journal.apply(decision);
      for (const Preemption& one : decision.preempt) journal.stopped(one.victim);
    }
    EXPECT_TRUE(journal.writing());
  }

  static void end_some(const Snapshot& snapshot, Journal& journal, std::mt19937_64& random) {
    std::vector<JobId> running;
    snapshot.jobs().for_each([&](uint64_t id, const Job& job) {
      if (job.state == JobState::running && random() % 8 == 0) running.push_back(id);
    });
    for (const JobId id : running) journal.end(id, random() % 4 != 0);
  }

  std::string text_of(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(JobsJournal, EveryCycleIsDecidedAgainAsItWas) {
  live(3);
  const ReplayReport report = replay(latest_journal(folder_));
  EXPECT_EQ(report.cycles, 300);
  EXPECT_GT(report.starts, 100);
  EXPECT_GT(report.preemptions, 0);
  EXPECT_EQ(report.differing, 0) << report.first_difference;
}

TEST_F(JobsJournal, AnotherPolicyDecidesOtherwiseAndSaysWhere) {
  live(3);
  const ReplayReport report = replay(latest_journal(folder_), policy_named("fifo"));
  EXPECT_EQ(report.cycles, 300);
  EXPECT_GT(report.differing, 0);
  EXPECT_GT(report.first_line, 0);
  EXPECT_NE(report.first_difference.find("then it starts"), std::string::npos);
}

TEST_F(JobsJournal, AJournalThatWasCutOffIsReadUpToThere) {
  live(4);
  const std::string path = latest_journal(folder_);
  const std::string whole = text_of(path);
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
  const ReplayReport report = replay(path);
  EXPECT_GT(report.cycles, 50);
  EXPECT_EQ(report.differing, 0) << report.first_difference;
}

TEST_F(JobsJournal, AChangedJournalIsRefusedNotFatal) {
  live(5);
  const std::string path = latest_journal(folder_);
  const std::string whole = text_of(path);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string changed = whole.substr(0, 20'000);
    for (int i = 0; i < 3; ++i) {
      changed[random() % changed.size()] = static_cast<char>('0' + random() % 10);
    }
    std::ofstream(path, std::ios::binary) << changed;
    try {
      replay(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(JobsJournal, OldOnesGo) {
  for (int i = 0; i < journals_kept + 3; ++i) {
    const Policy policy;
    Snapshot snapshot(policy);
    const Journal journal(snapshot, folder_ / "cycles", policy);
  }
  int files = 0;
  for ([[maybe_unused]] const auto& item : fs::directory_iterator(folder_ / "cycles")) ++files;
  EXPECT_EQ(files, journals_kept);
}

}  // namespace
}  // namespace dais::jobs
