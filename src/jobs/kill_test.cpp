// The daemon is killed at random moments under load; what it acknowledged must run, once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "http/client.h"
#include "http/server.h"
#include "jobs/api.h"
#include "jobs/daemon.h"
#include "jobs/machine.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// DAIS_KILLS sets how often; the full count takes some minutes.
int wanted_kills() {
  const char* text = std::getenv("DAIS_KILLS");
  return text ? std::atoi(text) : 15;
}

class KillTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dais_kill_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    runs_ = folder_;
  }
  void TearDown() override {
    if (daemon_ > 0) kill_daemon();
    fs::remove_all(folder_);
  }

  void be_daemon() const {
    Host host;
    host.name = "box";
    host.devices = 8;
    host.cpu_milli = 64'000;
    host.memory_mib = 65'536;
    Daemon daemon({folder_, host, policy_named("default"), steady_now_s, 64 << 20});
    Api api(daemon);
    http::Server server([&api](const http::Request& request) { return api.answer(request); });
    server.listen_unix(socket_path(folder_.string()), 0600);
    daemon.run();
  }
  void start_daemon() {
    daemon_ = fork();
    if (daemon_ != 0) return;
    try {
      be_daemon();
    } catch (const Error& error) {
      std::fprintf(stderr, "the daemon ended: %s\n", error.what());
    }
    _exit(0);
  }
  void kill_daemon() {
    kill(daemon_, SIGKILL);
    int status = 0;
    waitpid(daemon_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the daemon had ended by itself";
    daemon_ = 0;
  }
  http::Response ask(const std::string& method, const std::string& target,
                     const std::string& body = {}) const {
    return http::request("unix:" + socket_path(folder_.string()), method, target, body);
  }
  /// Seconds until it answers.
  double time_to_answer() const {
    const auto start = Clock::now();
    while (true) {
      try {
        if (ask("GET", "/v1/status").status == 200) break;
      } catch (const Error&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      if (Clock::now() - start > std::chrono::seconds(30)) break;
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  // True when the daemon said that it has the job.
  bool submit(const std::string& key) const {
    try {
      return post(key).status == 200;
    } catch (const Error&) {
      return false;
    }
  }
  http::Response post(const std::string& key) const {
    JobRequest request;
    request.name = "short";
    request.command = {"/bin/sh", "-c", "echo " + key + " >> runs; sleep 0.01"};
    request.folder = runs_.string();
    request.gpu_milli = 1000;
    request.preemptible = false;
    Json body;
    body["key"] = key;
    body["jobs"] = Json::array({Json::parse(to_json(request))});
    return ask("POST", "/v1/jobs", body.dump());
  }
  std::map<std::string, int> runs() const {
    std::map<std::string, int> counts;
    std::ifstream file(runs_ / "runs");
    for (std::string key; file >> key;) ++counts[key];
    return counts;
  }

  // Starts, lets `during` work for up to 60 ms and kills, so many times; then a last daemon runs
  // everything to its end. `before` gets the number of daemons that were started so.
  void kill_and_check(int kills, const std::function<void()>& during,
                      const std::function<void(int)>& before) {
    for (int round = 0; round < kills; ++round) {
      before(round);
      start_daemon();
      slowest_s_ = std::max(slowest_s_, time_to_answer());
      const auto end = Clock::now() + std::chrono::microseconds(random_() % 60'000);
      while (Clock::now() < end) during();
      kill_daemon();
    }
    before(kills);
    start_daemon();
    slowest_s_ = std::max(slowest_s_, time_to_answer());
    const auto limit = Clock::now() + std::chrono::seconds(300);
    while (Clock::now() < limit) {
      if (Json::parse(ask("GET", "/v1/jobs?most=1").body)["jobs"].empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    expect_each_once();
    std::printf("%d kills, %zu jobs acknowledged, slowest recovery %.3f s\n", kills,
                acknowledged_.size(), slowest_s_);
  }
  void expect_each_once() {
    const auto counts = runs();
    int lost = 0, twice = 0;
    for (const std::string& key : acknowledged_) lost += !counts.contains(key);
    for (const auto& [key, count] : counts) twice += count > 1;
    EXPECT_EQ(lost, 0);
    EXPECT_EQ(twice, 0);
    EXPECT_GT(acknowledged_.size(), 0U);
    RecordProperty("acknowledged", static_cast<int>(acknowledged_.size()));
  }
  void submit_next() {
    const std::string key = "k" + std::to_string(next_++);
    if (submit(key)) acknowledged_.insert(key);
  }

  fs::path folder_;  // of the daemon
  fs::path runs_;    // where the jobs say that they ran
  pid_t daemon_ = 0;
  std::mt19937 random_{1};
  std::set<std::string> acknowledged_;
  int next_ = 0;
  double slowest_s_ = 0;
};

TEST_F(KillTest, NothingAcknowledgedIsLostOrRunTwice) {
  kill_and_check(
      wanted_kills(), [this] { submit_next(); }, [](int) {});
}

// The data folder on a disk of its own, which the test fills to the last byte.
class FullDiskTest : public KillTest {
 protected:
  void SetUp() override {
    KillTest::SetUp();
    runs_ = folder_.string() + "_runs";
    fs::create_directories(runs_);
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=8m,mode=700") != 0) {
      fs::remove_all(runs_);
      GTEST_SKIP() << "mounting a small disk needs root: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (daemon_ > 0) kill_daemon();
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
    fs::remove_all(runs_);
    KillTest::TearDown();
  }
  void fill() const {
    const int file =
        open((folder_ / "filler").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    const std::vector<char> block(64 << 10, 'x');
    for (size_t size = block.size(); size > 0;) {
      if (write(file, block.data(), size) < 0) size /= 2;
    }
    close(file);
  }

  bool mounted_ = false;
};

TEST_F(FullDiskTest, NothingAcknowledgedIsLostOrRunTwice) {
  start_daemon();
  time_to_answer();
  while (acknowledged_.size() < 20) submit_next();
  fill();
  // What runs and waits goes on while the space kept back lasts; nothing new is taken.
  int refused = 0;
  for (int i = 0; i < 2000 && refused == 0; ++i) {
    const std::string key = "late" + std::to_string(i);
    const auto status = post(key).status;
    if (status == 200) acknowledged_.insert(key);
    refused += status == 507;
  }
  EXPECT_GT(refused, 0);
  kill_daemon();
  // Every eighth daemon finds room again, and loses it to others at some moment under load.
  int answered = 0;
  const auto load = [&] {
    submit_next();
    if (++answered % 5 == 0) fill();
  };
  const auto free_disk = [this] { fs::remove(folder_ / "filler"); };
  kill_and_check(wanted_kills(), load, [&](int round) {
    if (round % 8 == 0 || round == wanted_kills()) free_disk();
  });
}

}  // namespace
}  // namespace dais::jobs
