#include "jobs/slurm.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "jobs/slurm_executor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

// As Slurm 22.05 prints them.
TEST(JobsSlurm, ReadsNodes) {
  const auto nodes = parse_nodes(
      "n1|10.0.0.1|64|512000|gpu:a100:8(S:0-1)|idle\n"
      "n1|10.0.0.1|64|512000|gpu:a100:8(S:0-1)|idle\n"
      "n2|10.0.0.2|32|256000|(null)|mixed\n"
      "n3|10.0.0.3|32|256000|gpu:2,shard:8|down*\n"
      "n4|10.0.0.4|32|256000|gpu:a:2,gpu:b:1|draining\n"
      "cut|10.0.0.5\n");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0], (SlurmNode{"n1", "10.0.0.1", 8, 64, 512'000, true}));
  EXPECT_EQ(nodes[1], (SlurmNode{"n2", "10.0.0.2", 0, 32, 256'000, true}));
  EXPECT_EQ(nodes[2], (SlurmNode{"n3", "10.0.0.3", 2, 32, 256'000, false}));
  EXPECT_EQ(nodes[3].gpus, 3);
  EXPECT_FALSE(nodes[3].up);
}

TEST(JobsSlurm, KnowsJobsByTheirCommentAndPrefersOneThatIsNotOver) {
  const auto jobs = parse_jobs(
      "7|COMPLETED|None|a\n8|RUNNING|None|a\n9|PENDING|Priority|b\n10|FAILED|NonZeroExitCode|c\n"
      "11|RUNNING|None|\n12|CANCELLED|None|b\n13|PENDING|launch failed requeued held|d\n14|cut\n");
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs.at("a"), (SlurmJob{"8", "RUNNING"}));
  EXPECT_EQ(jobs.at("b"), (SlurmJob{"9", "PENDING"}));
  EXPECT_TRUE(jobs.at("c").over());
  EXPECT_FALSE(jobs.at("b").launch_failed);
  EXPECT_TRUE(jobs.at("d").launch_failed);
}

TEST(JobsSlurm, AWordOfAShellIsOneWordWhateverItHolds) {
  for (const std::string text :
       {"", "plain", "it's", "$(id) `id` \"x\" \\ ; rm -rf *", "two\nlines"}) {
    const std::string path = fs::temp_directory_path() / ("dais_word_" + std::to_string(getpid()));
    const std::string script = "printf %s " + shell_word(text) + " > " + path;
    ASSERT_EQ(std::system(script.c_str()), 0);
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
    fs::remove(path);
  }
}

TEST(JobsSlurm, TheFirstFailedTaskIsNamed) {
  const auto exited = first_failure(
      "srun: launch/slurm: launch_p_step_launch: StepId=5.0 aborted before step completely "
      "launched.\n"
      "srun: error: n2: task 1: Exited with exit code 7\n"
      "srun: error: n1: task 0: Killed\n");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->task, 1);
  EXPECT_EQ(exited->exit_code, 7);
  const auto several = first_failure("srun: error: n3: tasks 2-3: Segmentation fault\n");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->task, 2);
  EXPECT_EQ(several->signal, SIGSEGV);
  EXPECT_FALSE(first_failure("srun: job 3 queued and waiting for resources\n"));
  // A job may write into it, too.
  const auto huge = first_failure("task 99999999999999999999: Exited with exit code 1\n");
  ASSERT_TRUE(huge);
  EXPECT_LE(huge->task, 999'999);
  const std::string endless(1 << 20, 'x');
  EXPECT_FALSE(first_failure("task 1" + endless + ": Killed\n"));
}

// Programs that stand in for Slurm's: a queue in a file, which a test may lose.
class JobsSlurmStandIn : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dais_slurm_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    program("squeue", "[ ! -e $D/away ] || exit 1; cat $D/queue");
    program("sinfo", "[ ! -e $D/away ] || exit 1; echo 'n1|127.0.0.1|4|2048|gpu:2|idle'");
    program(
        "sbatch",
        "if [ -e $D/refusal ]; then cat $D/refusal >&2; exit 1; fi\n"
        "for word; do case $word in --comment=*) uuid=${word#--comment=};; esac; done\n"
        "echo $uuid >> $D/submitted\n"
        "[ -e $D/forgetful ] || echo \"$(wc -l < $D/submitted)|PENDING|None|$uuid\" >> $D/queue\n"
        "wc -l < $D/submitted");
    program("scancel", "echo \"$@\" >> $D/cancelled; sed -i 's/PENDING/CANCELLED/' $D/queue");
    write("queue", "");
    write("submitted", "");
    path_ = std::getenv("PATH");
    setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void program(const std::string& name, const std::string& body) {
    write(name, "#!/bin/sh\nD=" + folder_.string() + "\n" + body + "\n");
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  int lines(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }
  template <typename Condition>
  static bool soon(Condition condition) {
    for (int i = 0; i < 200; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  JobRequest job() const {
    JobRequest request;
    request.command = {"true"};
    request.folder = folder_.string();
    return request;
  }
  Slurm::Order order() const { return {{"script"}, {}, (folder_ / "begun").string()}; }

  fs::path folder_;
  std::string path_;
};

TEST_F(JobsSlurmStandIn, WhatVanishedIsSubmittedAgainUntilItBegins) {
  Slurm slurm("", "u");
  slurm.keep("u", order());
  ASSERT_TRUE(soon([&] { return lines("submitted") == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_EQ(lines("submitted"), 1);  // Slurm knows it
  write("away", "");
  write("queue", "");
  ASSERT_TRUE(soon([&] { return !slurm.reachable(); }));
  EXPECT_EQ(lines("submitted"), 1);  // nobody can say that it is lost
  fs::remove(folder_ / "away");
  ASSERT_TRUE(soon([&] { return lines("submitted") == 2; }));
  write("begun", "1");
  write("queue", "");
  ASSERT_TRUE(soon([&] { return slurm.view("u").reached && !slurm.view("u").job; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_EQ(lines("submitted"), 2);
}

TEST_F(JobsSlurmStandIn, ARefusalIsKeptAndAnAbsenceIsNot) {
  write("refusal", "sbatch: error: Unable to contact slurm controller (connect failure)\n");
  Slurm slurm("", "u");
  slurm.keep("u", order());
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_EQ(slurm.view("u").refusal, "");
  write("refusal", "sbatch: error: invalid partition specified: none\n");
  ASSERT_TRUE(soon([&] { return !slurm.view("u").refusal.empty(); }));
  EXPECT_NE(slurm.view("u").refusal.find("invalid partition"), std::string::npos);
}

TEST_F(JobsSlurmStandIn, ASignalBeforeItBeganCancelsItForGood) {
  Slurm slurm("", "u");
  slurm.keep("u", order());
  ASSERT_TRUE(soon([&] { return lines("queue") == 1; }));
  slurm.signal("u", SIGTERM);
  ASSERT_TRUE(soon([&] { return slurm.view("u").cancelled && slurm.view("u").reached; }));
  EXPECT_EQ(lines("cancelled"), 1);
  write("queue", "");
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_EQ(lines("submitted"), 1);
}

// What no node could start is started again; what somebody cancelled is not.
TEST_F(JobsSlurmStandIn, ALaunchThatFailedIsNoCancellation) {
  SlurmExecutor executor(folder_ / "data", {}, "id");
  JobRequest request = job();
  executor.start({1, 1}, request, {{0, -1, 0, 0}});
  ASSERT_TRUE(soon([&] { return lines("queue") == 1; }));
  EXPECT_EQ(executor.inspect({1, 1}, 1).state, AttemptState::queued);
  const std::string id = executor.uuid({1, 1});
  const auto lost = [&] { return executor.inspect({1, 1}, 1).state == AttemptState::lost; };
  write("queue", "1|PENDING|launch failed requeued held|" + id + "\n");
  ASSERT_TRUE(soon(lost));
  EXPECT_TRUE(executor.inspect({1, 1}, 1).blameless);
  write("queue", "1|CANCELLED|Priority|" + id + "\n");
  ASSERT_TRUE(soon([&] { return lost() && !executor.inspect({1, 1}, 1).blameless; }));
  EXPECT_EQ(executor.inspect({1, 1}, 1).note, "Slurm ended it: CANCELLED");
  EXPECT_EQ(lines("submitted"), 1);
}

// Whoever submits owns what his attempt writes into, and not where it lies.
TEST_F(JobsSlurmStandIn, TheFilesOfAnAttemptAreItsUsersAndItsFolderIsNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  // With a slash behind it: the way to the attempt begins at the data folder all the same.
  fs::create_directories(folder_ / "data");
  fs::permissions(folder_ / "data", fs::perms::owner_all);
  SlurmExecutor executor(folder_ / "data/", {}, "id", true);
  JobRequest request = job();
  request.user = "nobody";
  request.tasks = 2;
  executor.start({1, 1}, request, {{0, -1, 0, 0}, {0, -1, 1, 0}});
  const fs::path attempt = folder_ / "data/jobs/1/1";
  struct stat status {};
  for (const fs::directory_entry& file : fs::directory_iterator(attempt)) {
    ASSERT_EQ(lstat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 65'534U) << file.path();
    EXPECT_EQ(status.st_mode, mode_t{S_IFREG | 0600}) << file.path();
  }
  for (const fs::path& folder : {attempt, attempt.parent_path(), folder_ / "data/jobs"}) {
    ASSERT_EQ(stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 0U) << folder;
    EXPECT_EQ(status.st_mode & 0777U, 0711U) << folder;
  }
  EXPECT_EQ(fs::status(folder_ / "data").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::exists(executor.log({1, 1}, 1)));
  // Again, as after a restart of the daemon: what was written stays.
  std::ofstream(attempt / "begun") << "1";
  executor.start({1, 1}, request, {{0, -1, 0, 0}, {0, -1, 1, 0}});
  EXPECT_EQ(fs::file_size(attempt / "begun"), 1U);
  request.user = "nobody-here";
  EXPECT_THROW(executor.start({2, 1}, request, {{0, -1, 0, 0}, {0, -1, 1, 0}}), Error);
}

TEST_F(JobsSlurmStandIn, WhatAJobWroteIntoItsFilesIsReadWithinBounds) {
  SlurmExecutor executor(folder_ / "data", {}, "id");
  JobRequest request = job();
  executor.start({1, 1}, request, {{0, -1, 0, 0}});
  ASSERT_TRUE(soon([&] { return lines("queue") == 1; }));
  const fs::path attempt = folder_ / "data/jobs/1/1";
  const auto state = [&] { return executor.inspect({1, 1}, 1).state; };
  fs::resize_file(attempt / "status", uint64_t{1} << 40);
  fs::resize_file(attempt / "srun.log", uint64_t{1} << 40);
  EXPECT_EQ(state(), AttemptState::queued);
  std::ofstream(attempt / "begun") << "1";
  EXPECT_EQ(state(), AttemptState::running);
  std::fstream(attempt / "status") << "ended 99999999999999999999 and more";
  EXPECT_EQ(state(), AttemptState::ended);
  std::fstream(attempt / "status") << "ended 3";
  fs::resize_file(attempt / "status", 7);
  EXPECT_EQ(executor.inspect({1, 1}, 1).exit_code, 3);
}

TEST_F(JobsSlurmStandIn, StraysAreCancelledOnceAllAreKept) {
  write("queue",
        "1|PENDING|None|u1\n2|PENDING|None|other\n3|COMPLETED|None|u3\n4|PENDING|None|u4\n");
  Slurm slurm("", "u");
  slurm.keep("u4", order());
  ASSERT_TRUE(soon([&] { return slurm.view("u4").reached; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(lines("queue"), 4);
  EXPECT_FALSE(fs::exists(folder_ / "cancelled"));
  slurm.cancel_strays();
  ASSERT_TRUE(soon([&] { return fs::exists(folder_ / "cancelled"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::ifstream file(folder_ / "cancelled");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "1\n");
}

TEST_F(JobsSlurmStandIn, WithoutAnAnswerThereIsNoExecutor) {
  write("away", "");
  try {
    const SlurmExecutor none(folder_ / "data", {}, "id");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
  }
}

TEST_F(JobsSlurmStandIn, AnAttemptHasOneUuidAndOthersHaveOthers) {
  const SlurmExecutor one(folder_ / "data", {}, "id"), same(folder_ / "data", {}, "id"),
      other(folder_ / "data", {}, "di");
  EXPECT_EQ(one.uuid({1, 2}), same.uuid({1, 2}));
  EXPECT_NE(one.uuid({1, 2}), one.uuid({12, 2}));
  EXPECT_NE(one.uuid({1, 2}), one.uuid({1, 3}));
  EXPECT_NE(one.uuid({1, 2}), other.uuid({1, 2}));
  EXPECT_EQ(one.uuid({1, 2}).substr(0, 13), one.uuid({3, 4}).substr(0, 13));
  EXPECT_NE(one.uuid({1, 2}).substr(0, 13), other.uuid({1, 2}).substr(0, 13));
  EXPECT_EQ(one.uuid({1, 2}).size(), 36u);
  EXPECT_EQ(one.uuid({1, 2})[14], '8');  // RFC 9562: made of a hash of our choice
  ASSERT_EQ(one.hosts({}).size(), 1u);
  EXPECT_EQ(one.hosts({})[0].devices, 2);
}

}  // namespace
}  // namespace dais::jobs
