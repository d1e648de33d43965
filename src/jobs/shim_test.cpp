#include "jobs/shim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "jobs/control_group.h"

namespace dais::jobs {
namespace {

class JobsShim : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "dais_shim_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    attempt = folder + "/attempt";
  }
  void TearDown() override {
    signal_attempt(attempt, SIGKILL);
    wait_for(AttemptState::ended);
    std::filesystem::remove_all(folder);
  }

  Launch shell(const std::string& script) const {
    return {{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin", "RANK=3"}, folder, folder + "/log"};
  }

  AttemptStatus wait_for(AttemptState state) const {
    AttemptStatus status = inspect_attempt(attempt);
    for (int i = 0; i < 1000 && status.state != state; ++i) {
      if (status.state == AttemptState::absent || status.state == AttemptState::lost) break;
      usleep(10'000);
      status = inspect_attempt(attempt);
    }
    return status;
  }

  std::string text_of(const std::string& name) const {
    std::ifstream file(folder + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  bool wait_for_text(const std::string& name) const {
    for (int i = 0; i < 1000; ++i) {
      const std::string text = text_of(name);
      if (!text.empty() && text.back() == '\n') return true;
      usleep(10'000);
    }
    return false;
  }

  std::string folder, attempt;
};

TEST_F(JobsShim, KeepsTheExitCodeAndTheOutput) {
  const ProcessId process = start_attempt(attempt, shell("echo rank $RANK; pwd; exit 7"));
  const AttemptStatus status = wait_for(AttemptState::ended);
  EXPECT_EQ(status.state, AttemptState::ended);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_EQ(status.signal, 0);
  EXPECT_EQ(status.process, process);
  EXPECT_EQ(text_of("log"), "rank 3\n" + folder + "\n");
}

TEST_F(JobsShim, TellsTheSignalThatKilledIt) {
  start_attempt(attempt, shell("kill -9 $$"));
  const AttemptStatus status = wait_for(AttemptState::ended);
  EXPECT_EQ(status.state, AttemptState::ended);
  EXPECT_EQ(status.signal, SIGKILL);
}

TEST_F(JobsShim, NothingOutlivesItsJob) {
  // One orphan stays in the group, the other leaves group and session.
  start_attempt(attempt, shell("sleep 1000 & echo $! > one; setsid sleep 1000 & echo $! > two;"
                               " sleep 0.2; exit 0"));
  EXPECT_EQ(wait_for(AttemptState::ended).state, AttemptState::ended);
  for (const char* name : {"one", "two"}) {
    const pid_t pid = std::atoi(text_of(name).c_str());
    ASSERT_GT(pid, 0);
    EXPECT_EQ(kill(pid, 0), -1) << name;
  }
}

TEST_F(JobsShim, OutlivesTheProcessThatStartedIt) {
  const pid_t starter = fork();
  ASSERT_GE(starter, 0);
  if (starter == 0) {
    try {
      start_attempt(attempt, shell("sleep 0.3; exit 5"));
    } catch (...) {
      _exit(1);
    }
    kill(getpid(), SIGKILL);
  }
  waitpid(starter, nullptr, 0);
  const AttemptStatus adopted = inspect_attempt(attempt);
  EXPECT_EQ(adopted.state, AttemptState::running);
  ASSERT_TRUE(adopted.process);
  EXPECT_EQ(identify(adopted.process->pid), adopted.process);
  EXPECT_EQ(wait_for(AttemptState::ended).exit_code, 5);
}

TEST_F(JobsShim, SignalsReachTheWholeGroupAndOnlyIt) {
  start_attempt(attempt, shell("trap 'echo saved > saved; exit 3' TERM; echo up > up;"
                               " while :; do sleep 0.05; done"));
  ASSERT_TRUE(wait_for_text("up"));
  EXPECT_TRUE(signal_attempt(attempt, SIGTERM));
  const AttemptStatus status = wait_for(AttemptState::ended);
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_EQ(text_of("saved"), "saved\n");
  EXPECT_FALSE(signal_attempt(attempt, SIGTERM));
}

TEST_F(JobsShim, ADeadShimIsLostNotEnded) {
  start_attempt(attempt, shell("echo $PPID > parent; sleep 1000"));
  ASSERT_TRUE(wait_for_text("parent"));
  const AttemptStatus running = inspect_attempt(attempt);
  ASSERT_TRUE(running.process);
  kill(std::atoi(text_of("parent").c_str()), SIGKILL);
  kill(-running.process->pid, SIGKILL);
  EXPECT_EQ(wait_for(AttemptState::lost).state, AttemptState::lost);
}

// Both versions of control groups, where this machine mounts them.
TEST_F(JobsShim, ADeniedDeviceCannotBeOpened) {
  int tried = 0;
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    ControlGroups groups("dais-test-" + std::to_string(getpid()), mount);
    if (!groups.holds("devices")) continue;
    const std::string here = folder + "/attempt" + std::to_string(tried++);
    Launch launch = shell(
        "head -c 1 /dev/zero > zero && echo open > out || echo denied > out;"
        " head -c 1 /dev/urandom > random && echo open >> out");
    launch.groups = groups.create("one", {0, 0, {"c 1:5", "c 195:3"}});
    start_attempt(here, launch);
    AttemptStatus status;
    while ((status = inspect_attempt(here)).state == AttemptState::running) usleep(1000);
    EXPECT_EQ(status.state, AttemptState::ended);
    EXPECT_EQ(text_of("out"), "denied\nopen\n") << mount;
    groups.remove("one");
    groups.dissolve();
  }
  if (tried == 0) GTEST_SKIP() << "no control group of devices can be made here";
}

TEST_F(JobsShim, RefusesWhatCannotStart) {
  auto code = [](const Launch& launch, const std::string& where) {
    try {
      start_attempt(where, launch);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  };
  Launch missing = shell("");
  missing.command = {"/none/such"};
  EXPECT_EQ(code(missing, attempt), Code::not_found);
  EXPECT_NE(inspect_attempt(attempt).state, AttemptState::running);
  EXPECT_NE(inspect_attempt(attempt).state, AttemptState::ended);
  // The same attempt never runs twice.
  EXPECT_EQ(code(shell("exit 0"), attempt), Code::unavailable);
  Launch relative = shell("");
  relative.command = {"sh"};
  EXPECT_EQ(code(relative, folder + "/other"), Code::invalid_argument);
  EXPECT_EQ(inspect_attempt(folder + "/never").state, AttemptState::absent);
}

}  // namespace
}  // namespace dais::jobs
