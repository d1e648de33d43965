#include "jobs/controller.h"

#include <gtest/gtest.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "jobs/daemon.h"
#include "jobs/data_folder.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

// A data folder of its own, and a machine with four devices that nothing is asked of.
class ControllerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dais_controller_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    open();
  }
  void TearDown() override {
    for (const JobView& view : controller_->list(false, INT64_MAX, 1000)) {
      controller_->cancel(view.row.id, "the test");
    }
    run_until([this] { return controller_->list(false, INT64_MAX, 1).empty(); });
    controller_.reset();
    fs::remove_all(folder_);
  }

  struct Options {
    bool own_users = false;
    int64_t processes = 4096;
    double log_limit_bytes = 64 << 20;
  };
  void open() { open(Options()); }
  void open(const Options& options) {
    Host host;
    host.name = "box";
    host.devices = 4;
    host.cpu_milli = 64'000;
    host.memory_mib = 65'536;
    controller_.reset();
    controller_ =
        std::make_unique<Controller>(Controller::Options{folder_,
                                                         host,
                                                         policy_named("default"),
                                                         [this] { return steady_now_s() + set_s_; },
                                                         options.log_limit_bytes,
                                                         {},
                                                         600,
                                                         options.own_users,
                                                         options.processes});
  }

  JobRequest script(const std::string& text, double gpus = 1) const {
    JobRequest request;
    request.name = "test";
    request.user = "tester";
    request.command = {"/bin/sh", "-c", text};
    request.folder = folder_.string();
    request.gpu_milli = static_cast<int64_t>(gpus * 1000);
    request.grace_s = 0.2;
    return request;
  }
  int64_t submit(const JobRequest& request, const std::string& key = {}) {
    return controller_->submit({{key, request}})[0];
  }
  Phase phase(int64_t job) const { return controller_->show(job)->row.phase; }

  template <typename Condition>
  bool run_until(Condition condition, double seconds = 20) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      controller_->step();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  bool reaches(int64_t job, Phase wanted) {
    return run_until([&] { return phase(job) == wanted; });
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  double set_s_ = 0;  // what somebody set the clock forward by
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, RunsAJobWithItsEnvironment) {
  JobRequest request = script("echo $RANK/$WORLD_SIZE $CUDA_VISIBLE_DEVICES $HELLO > out", 2);
  request.environment["HELLO"] = "there";
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::completed));
  EXPECT_EQ(text_of("out"), "0/1 0,1 there\n");
  EXPECT_EQ(controller_->why(job), "it has ended: completed, exit code 0");
}

TEST_F(ControllerTest, WhatFitsIsStartingWhenItIsAcknowledged) {
  const int64_t first = submit(script("sleep 60", 3));
  EXPECT_EQ(phase(first), Phase::starting);
  const int64_t second = submit(script("true", 2));
  EXPECT_EQ(phase(second), Phase::waiting);
  JobRequest after = script("true");
  after.after = {first};
  EXPECT_EQ(phase(submit(after)), Phase::waiting);
  // The same key again changes nothing.
  const int64_t keyed = submit(script("echo x >> runs"), "once");
  EXPECT_EQ(submit(script("echo x >> runs"), "once"), keyed);
  ASSERT_TRUE(reaches(keyed, Phase::completed));
  EXPECT_EQ(submit(script("echo x >> runs"), "once"), keyed);
  controller_->cancel(first, "the test");
  ASSERT_TRUE(reaches(second, Phase::completed));
  EXPECT_EQ(text_of("runs"), "x\n");
}

TEST_F(ControllerTest, LosersOfASearchEndEarly) {
  std::vector<Controller::Submission> trials;
  for (int i = 0; i < 4; ++i) {
    // All report 0.i at step 1, the best first; each goes on to step 3 when told to.
    JobRequest trial =
        script("sleep 0." + std::to_string(i) + "; echo dais-report 1 0." + std::to_string(i) +
               "; until [ -e go ]; do sleep 0.05; done;" + " echo dais-report 3 0.1; sleep 1");
    trial.search = {"", 1, 3, false};
    trials.push_back({"", trial});
  }
  const std::vector<int64_t> jobs = controller_->submit(trials);
  // Of the four that were compared at step 1, the best two may go on; the third stops when it is
  // the third of three.
  ASSERT_TRUE(run_until([&] { return ended(phase(jobs[2])) && ended(phase(jobs[3])); }));
  EXPECT_EQ(phase(jobs[2]), Phase::cancelled);
  EXPECT_NE(controller_->show(jobs[2])->row.outcome.find("cancelled by its search: at step 1"),
            std::string::npos);
  EXPECT_EQ(controller_->store().rung(controller_->show(jobs[0])->request.search.group, 1).size(),
            4U);
  std::ofstream(folder_ / "go") << "x";
  ASSERT_TRUE(reaches(jobs[0], Phase::completed));
}

TEST_F(ControllerTest, AForkBombMeetsItsLimitAndNothingOfItIsLeft) {
  const auto walls = controller_->executor().walls();
  if (std::ranges::count(walls, "pids") == 0) GTEST_SKIP() << "no control group for processes";
  Options options;
  options.processes = 40;
  open(options);
  // Two start processes that stay until the system refuses one, which ends a shell. The first does
  // not wait for them: its end would be the job's, and take everything away before it is counted.
  const int64_t job = submit(script(
      "b() { while :; do sleep 600 & done; }; b 2>/dev/null & b 2>/dev/null & exec sleep 600"));
  ASSERT_TRUE(run_until([&] { return controller_->executor().members({job, 1}).size() >= 30; }));
  EXPECT_LE(controller_->executor().members({job, 1}).size(), 40U);
  controller_->cancel(job, "the test");
  ASSERT_TRUE(reaches(job, Phase::cancelled));
  EXPECT_TRUE(controller_->executor().members({job, 1}).empty());
}

TEST_F(ControllerTest, AFloodOfOutputIsKeptWithinItsLimit) {
  Options options;
  options.log_limit_bytes = 1 << 20;
  open(options);
  const int64_t job = submit(script("while :; do head -c 100000 /dev/zero; done"));
  const fs::path log = controller_->executor().log({job, 1}, 0), old = log.string() + ".old";
  ASSERT_TRUE(run_until([&] { return fs::exists(old) && fs::file_size(old) > 0; }));
  EXPECT_LE(fs::file_size(old), 1U << 20);
  controller_->cancel(job, "the test");
  ASSERT_TRUE(reaches(job, Phase::cancelled));
  EXPECT_LE(fs::file_size(log), 1U << 20);
  EXPECT_LE(fs::file_size(old), 1U << 20);
}

TEST_F(ControllerTest, WhatAJobWroteToStorageIsBooked) {
  // Memory is no storage, and nobody counts what is written to it.
  struct statfs about {};
  ASSERT_EQ(statfs(folder_.c_str(), &about), 0);
  if (about.f_type == 0x01021994) GTEST_SKIP() << "the folder of the test lies in memory";
  const int64_t job =
      submit(script("(dd if=/dev/zero of=big bs=1M count=3 conv=fsync; wait) & wait"));
  ASSERT_TRUE(reaches(job, Phase::completed));
  const auto sums = controller_->store().usage("", 0, 1e12);
  ASSERT_EQ(sums.size(), 1U);
  ASSERT_TRUE(sums[0].written_bytes);
  EXPECT_GE(*sums[0].written_bytes, 3 << 20);
}

TEST_F(ControllerTest, AClockThatIsSetEndsNothingAndDelaysNothing) {
  JobRequest limited = script("sleep 600");
  limited.time_limit_s = 3600;
  const int64_t runs = submit(limited);
  JobRequest again = script("echo x >> tries; false");
  again.retries = 1000;
  again.backoff_s = 0.01;
  const int64_t fails = submit(again);
  ASSERT_TRUE(reaches(runs, Phase::running));
  for (const double set_s : {86'400.0, -86'400.0, 0.0}) {
    set_s_ = set_s;
    open();
    const size_t tries = text_of("tries").size();
    ASSERT_TRUE(run_until([&] { return text_of("tries").size() > tries; })) << set_s;
    EXPECT_EQ(phase(runs), Phase::running) << set_s;
  }
  EXPECT_EQ(controller_->show(runs)->row.attempts, 1);
  controller_->cancel(fails, "the test");
}

TEST_F(ControllerTest, AFailureIsRetriedAndThenSaid) {
  JobRequest request = script("echo x >> tries; exit 3");
  request.retries = 2;
  request.backoff_s = 0.01;
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::failed));
  EXPECT_EQ(text_of("tries"), "x\nx\nx\n");
  EXPECT_EQ(controller_->show(job)->row.outcome, "exit code 3");
  EXPECT_EQ(controller_->show(job)->row.failures, 3);
}

TEST_F(ControllerTest, AGangGetsItsRanksAndEndsTogether) {
  JobRequest request = script("echo $RANK >> ranks; [ $RANK = 1 ] && exit 7; sleep 60");
  request.tasks = 3;
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::running));
  ASSERT_TRUE(reaches(job, Phase::failed));
  EXPECT_EQ(controller_->show(job)->row.outcome.find("exit code 7 of task 1"), 0U)
      << controller_->show(job)->row.outcome;
}

TEST_F(ControllerTest, APriorityTakesThePlaceAndGivesItBack) {
  JobRequest patient = script(
      "trap 'echo saved >> log; exit 0' TERM; echo start >> log;"
      " [ -f go ] && exit 0; while :; do sleep 0.02; done",
      4);
  patient.min_run_s = 0.001;
  patient.grace_s = 30;  // it saves, however late the machine lets it
  const int64_t low = submit(patient);
  ASSERT_TRUE(run_until([&] { return text_of("log") == "start\n"; }));
  JobRequest urgent = script("touch go; echo urgent >> log", 4);
  urgent.priority = 100;
  const int64_t high = submit(urgent);
  ASSERT_TRUE(reaches(high, Phase::completed));
  ASSERT_TRUE(reaches(low, Phase::completed));
  EXPECT_EQ(text_of("log"), "start\nsaved\nurgent\nstart\n");
  EXPECT_EQ(controller_->show(low)->row.attempts, 2);
}

TEST_F(ControllerTest, AnElasticJobGoesOnWithAsManyTasksAsThereIsRoomFor) {
  const int64_t first = submit(script("sleep 600", 3));
  JobRequest elastic =
      script("trap 'exit 0' TERM; echo $WORLD_SIZE >> sizes.$RANK; while :; do sleep 0.02; done");
  elastic.tasks = 4;
  elastic.min_tasks = 1;
  elastic.min_run_s = 0.001;
  elastic.grace_s = 30;
  const int64_t job = submit(elastic);
  ASSERT_TRUE(run_until([this] { return text_of("sizes.0") == "1\n"; }));
  controller_->cancel(first, "the test");
  ASSERT_TRUE(run_until([this] { return text_of("sizes.0") == "1\n4\n"; }));
  for (const char* file : {"sizes.1", "sizes.2", "sizes.3"}) {
    ASSERT_TRUE(run_until([&] { return text_of(file) == "4\n"; })) << file;
  }
  // A controller that takes up knows with how many it runs.
  open();
  JobRequest urgent = script("sleep 600", 2);
  urgent.priority = 10;
  submit(urgent);
  ASSERT_TRUE(run_until([this] { return text_of("sizes.0") == "1\n4\n2\n"; }));
  EXPECT_TRUE(run_until([this] { return text_of("sizes.1") == "4\n2\n"; }));
  EXPECT_EQ(controller_->show(job)->placement.size(), 2U);
}

TEST_F(ControllerTest, OneThatIgnoresSigtermIsKilledAfterItsGrace) {
  const int64_t job = submit(script("trap '' TERM; touch up; while :; do sleep 0.05; done"));
  ASSERT_TRUE(run_until([&] { return fs::exists(folder_ / "up"); }));
  controller_->cancel(job, "the test");
  ASSERT_TRUE(reaches(job, Phase::cancelled));
  EXPECT_EQ(controller_->show(job)->row.outcome, "cancelled by the test");
}

TEST_F(ControllerTest, OneThatIsBeingStoppedCanStillBeCancelled) {
  JobRequest request = script("trap '' TERM; touch up; while :; do sleep 0.05; done");
  request.grace_s = 1;
  const int64_t job = submit(request);
  ASSERT_TRUE(run_until([&] { return fs::exists(folder_ / "up"); }));
  controller_->requeue(job, "tester");
  ASSERT_EQ(phase(job), Phase::stopping);
  controller_->cancel(job, "tester");
  open();  // a new one knows it too
  ASSERT_TRUE(reaches(job, Phase::cancelled));
  EXPECT_EQ(controller_->show(job)->row.outcome, "cancelled by tester");
}

TEST_F(ControllerTest, NothingThatAJobStartedOutlivesIt) {
  const int64_t job =
      submit(script("setsid sh -c 'echo $$ > orphan; exec sleep 600' & "
                    "while [ ! -s orphan ]; do sleep 0.01; done"));
  ASSERT_TRUE(reaches(job, Phase::completed));
  const int orphan = std::stoi(text_of("orphan"));
  EXPECT_TRUE(run_until([orphan] { return kill(orphan, 0) != 0; }, 5));
}

TEST_F(ControllerTest, APausedJobWaitsForSomebody) {
  const int64_t job = submit(script("[ -f again ] && exit 0; touch again; sleep 60"));
  ASSERT_TRUE(run_until([&] { return fs::exists(folder_ / "again"); }));
  controller_->pause(job, "tester");
  ASSERT_TRUE(reaches(job, Phase::waiting));
  for (int i = 0; i < 20; ++i) controller_->step();
  EXPECT_EQ(phase(job), Phase::waiting);
  EXPECT_NE(controller_->why(job).find("held"), std::string::npos);
  controller_->resume(job, "tester");
  EXPECT_TRUE(reaches(job, Phase::completed));
}

TEST_F(ControllerTest, DependenciesHoldAJobBackAndFailIt) {
  const int64_t first = submit(script("while [ ! -f go ]; do sleep 0.01; done"));
  JobRequest later = script("true");
  later.after = {first};
  const int64_t second = submit(later);
  for (int i = 0; i < 10; ++i) controller_->step();
  EXPECT_EQ(controller_->why(second), "it waits for job " + std::to_string(first));
  std::ofstream(folder_ / "go").flush();
  ASSERT_TRUE(reaches(second, Phase::completed));

  JobRequest failing = script("exit 1");
  const int64_t third = submit(failing);
  later.after = {third};
  const int64_t fourth = submit(later);
  ASSERT_TRUE(reaches(fourth, Phase::cancelled));
}

TEST_F(ControllerTest, ATimeLimitEndsAJob) {
  JobRequest request = script("sleep 60");
  request.time_limit_s = 0.1;
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::failed));
  EXPECT_EQ(controller_->show(job)->row.outcome.find("time limit"), 0U);
}

TEST_F(ControllerTest, EditsDoNotReachASnapshot) {
  std::ofstream(folder_ / "script.sh") << "echo before > ../../../seen\n";
  JobRequest request = script("true");
  fs::create_directories(folder_ / "work");
  fs::rename(folder_ / "script.sh", folder_ / "work" / "script.sh");
  request.folder = (folder_ / "work").string();
  request.snapshot = true;
  request.command = {"/bin/sh", "script.sh"};
  const int64_t job = submit(request);
  std::ofstream(folder_ / "work" / "script.sh") << "echo after > ../../../seen\n";
  ASSERT_TRUE(reaches(job, Phase::completed));
  EXPECT_EQ(text_of("seen"), "before\n");
}

TEST_F(ControllerTest, AnotherControllerTakesUpWhatRuns) {
  const int64_t running =
      submit(script("echo one >> runs; while [ ! -f go ]; do sleep 0.01; done"));
  const int64_t ending = submit(script("while [ ! -f ended ]; do sleep 0.01; done; exit 4"));
  const int64_t waiting = submit(script("echo late >> runs", 4));
  ASSERT_TRUE(reaches(ending, Phase::running));
  ASSERT_TRUE(run_until([&] { return text_of("runs") == "one\n"; }));
  controller_.reset();
  std::ofstream(folder_ / "ended").flush();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  open();
  ASSERT_TRUE(reaches(ending, Phase::failed));
  EXPECT_EQ(controller_->show(ending)->row.outcome, "exit code 4");
  EXPECT_EQ(phase(running), Phase::running);
  EXPECT_EQ(phase(waiting), Phase::waiting);
  std::ofstream(folder_ / "go").flush();
  ASSERT_TRUE(reaches(waiting, Phase::completed));
  EXPECT_EQ(phase(running), Phase::completed);
  EXPECT_EQ(text_of("runs"), "one\nlate\n");
}

TEST_F(ControllerTest, ACancellationStandsWhateverFollowsIt) {
  JobRequest request = script("trap '' TERM; echo up > up; while :; do sleep 0.05; done");
  request.grace_s = 60;
  const int64_t job = submit(request);
  ASSERT_TRUE(run_until([this] { return text_of("up") == "up\n"; }));
  controller_->cancel(job, "somebody");
  controller_->pause(job, "another");
  controller_->resume(job, "another");
  open();
  EXPECT_EQ(phase(job), Phase::stopping);
  // The new controller knows that it was cancelled; the grace begins anew.
  EXPECT_NE(controller_->why(job).find("cancelled by somebody"), std::string::npos);
  kill(-controller_->executor().processes({job, 1}, 1).at(0).pid, SIGKILL);
  ASSERT_TRUE(reaches(job, Phase::cancelled));
}

TEST_F(ControllerTest, WhatItDecidedCanBeDecidedAgain) {
  std::vector<int64_t> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(submit(script("sleep 0.05", 2)));
  JobRequest urgent = script("true", 4);
  urgent.priority = 10;
  jobs.push_back(submit(urgent));
  for (const int64_t job : jobs) ASSERT_TRUE(reaches(job, Phase::completed));
  const ReplayReport report = replay(latest_journal(folder_));
  EXPECT_GE(report.starts, 7);
  EXPECT_EQ(report.differing, 0) << report.first_difference;
}

TEST_F(ControllerTest, AJobRunsAsWhoSubmittedIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run jobs as other users";
  Options own;
  own.own_users = true;
  open(own);
  fs::create_directories(folder_ / "open");
  fs::permissions(folder_ / "open", fs::perms::all);
  fs::create_directories(folder_ / "closed");
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
  JobRequest request =
      script("id -u > who; echo $HOME > home; cat /etc/shadow && echo read > shadow");
  request.user = "nobody";
  request.folder = (folder_ / "open").string();
  EXPECT_TRUE(reaches(submit(request), Phase::failed));
  EXPECT_EQ(text_of("open/who"), "65534\n");
  EXPECT_NE(text_of("open/home"), "/root\n");
  EXPECT_EQ(text_of("open/shadow"), "");
  // Nor does it run where the user may not go.
  request.folder = (folder_ / "closed").string();
  EXPECT_TRUE(reaches(submit(request), Phase::failed));
  EXPECT_EQ(text_of("closed/who"), "");
  request.user = "nobody-here";
  EXPECT_THROW(submit(request), Error);
}

// What a user asks to be told by is his program, not root's.
TEST_F(ControllerTest, WhoIsToldOfAnEndIsTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run jobs as other users";
  const auto told = [this](bool own_users, const std::string& user) {
    const fs::path folder = folder_ / ("told_" + user);
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms::all);
    Options options;
    options.own_users = own_users;
    open(options);
    JobRequest request = script("true");
    request.user = user;
    request.folder = folder.string();
    request.notify = {"/bin/sh", "-c", "echo $(id -u) $(id -G) $(pwd) $0 $1 > out; mv out said"};
    const int64_t job = submit(request);
    EXPECT_TRUE(reaches(job, Phase::completed));
    EXPECT_TRUE(run_until([&] { return fs::exists(folder / "said"); }));
    const std::string rest = folder.string() + " " + std::to_string(job) + " completed\n";
    const std::string said = text_of("told_" + user + "/said");
    EXPECT_TRUE(said.ends_with(rest)) << said;
    return said.substr(0, said.size() - std::min(said.size(), rest.size()));
  };
  fs::permissions(folder_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  EXPECT_EQ(told(true, "nobody"), "65534 65534 ");
  EXPECT_TRUE(told(false, "anybody").starts_with("0 "));
}

// The copy is made with the rights of who submits, and he alone may use it.
TEST_F(ControllerTest, ASnapshotOfAnotherUserIsHis) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run jobs as other users";
  make_data_folder(folder_, true);
  Options own;
  own.own_users = true;
  open(own);
  const fs::path work = folder_.string() + "_work";
  fs::create_directories(work / "below");
  std::ofstream(work / "below" / "text") << "before\n";
  fs::create_symlink("/etc/shadow", work / "link");
  JobRequest request = script(
      "cat below/text; echo more > made; cat $PWD/made; cat link; cd ..; ls; stat -c '%U %a' "
      "folder");
  request.user = "nobody";
  request.folder = work.string();
  request.snapshot = true;
  const int64_t job = submit(request);
  std::ofstream(work / "below" / "text") << "after\n";
  ASSERT_TRUE(reaches(job, Phase::completed));
  std::ifstream log(controller_->executor().log({job, 1}, 0));
  const std::string said(std::istreambuf_iterator<char>(log), {});
  EXPECT_TRUE(said.starts_with("before\nmore\n")) << said;
  EXPECT_NE(said.find("link: Permission denied"), std::string::npos) << said;
  EXPECT_NE(said.find("'.': Permission denied"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("nobody 700\n")) << said;
  // What he cannot read is no part of his copy.
  std::ofstream(work / "roots") << "secret";
  fs::permissions(work / "roots", fs::perms::owner_all);
  try {
    submit(request);
    ADD_FAILURE() << "a file of root was copied";
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), (work / "roots").string());
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "incoming"));
  fs::remove_all(work);
}

TEST_F(ControllerTest, AJobOfAnotherUserHasItsOwnTmp) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run jobs as other users";
  Options own;
  own.own_users = true;
  open(own);
  const auto walls = controller_->executor().walls();
  if (std::ranges::count(walls, "tmp") == 0) GTEST_SKIP() << "no mount namespace";
  const std::string name = "dais_tmp_" + std::to_string(getpid());
  JobRequest request = script("ls -A /tmp; echo x > /tmp/" + name + "; ls /tmp /var/tmp; id -u");
  request.user = "nobody";
  request.folder = "/";
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::completed));
  std::ifstream log(controller_->executor().log({job, 1}, 0));
  const std::string said(std::istreambuf_iterator<char>(log), {});
  EXPECT_EQ(said, "/tmp:\n" + name + "\n\n/var/tmp:\n" + name + "\n65534\n");
  EXPECT_FALSE(fs::exists("/tmp/" + name));
  const fs::path left = folder_ / "jobs" / std::to_string(job) / "1" / "tmp";
  EXPECT_TRUE(run_until([&] { return !fs::exists(left); }));
}

TEST_F(ControllerTest, ASubmissionNamesAllItsProblems) {
  JobRequest request = script("true", 0.5);
  request.project = "defualt";
  request.tasks = 0;
  request.retries = -1;
  try {
    submit(request);
    FAIL() << "accepted";
  } catch (const Error& error) {
    for (const char* part : {"did you mean 'default'", "tasks:", "retries:"}) {
      EXPECT_NE(error.problem().find(part), std::string::npos) << error.problem();
    }
  }
  request = script("true", 5);
  EXPECT_THROW(submit(request), Error);
  request = script("true");
  request.folder = "/no/such/folder";
  EXPECT_THROW(submit(request), Error);
}

TEST_F(ControllerTest, WhatAProjectUsedIsRememberedByTheNextController) {
  ProjectRequest vision;
  vision.name = "vision";
  controller_->put_project(vision);
  UsageRow row;
  row.job = row.attempt = 1;
  row.project = "vision";
  row.end_s = steady_now_s() - policy_named("default").half_life_s;
  row.held_s = 1000;
  controller_->store().add_usage(row);
  open();
  double used = 0;
  controller_->snapshot().projects().for_each([&](uint64_t, const ProjectState& state) {
    if (state.spec->name == "vision") used = controller_->snapshot().usage_gpu_s(state);
  });
  EXPECT_NEAR(used, 500, 40);
  EXPECT_EQ(replay(latest_journal(folder_)).differing, 0);
}

TEST_F(ControllerTest, TheSameKeyIsTheSameJob) {
  const int64_t job = submit(script("true"), "once");
  EXPECT_EQ(submit(script("true"), "once"), job);
}

TEST_F(ControllerTest, AProgramThatIsNotThereFailsWithItsName) {
  JobRequest request = script("true");
  request.command = {"no-such-program"};
  const int64_t job = submit(request);
  ASSERT_TRUE(reaches(job, Phase::failed));
  EXPECT_NE(controller_->show(job)->row.outcome.find("no-such-program"), std::string::npos);
}

}  // namespace
}  // namespace dais::jobs
