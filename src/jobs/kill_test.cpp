// The daemon is killed at random moments under load; what it acknowledged must run, once.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  }
  void TearDown() override {
    if (daemon_ > 0) kill_daemon();
    fs::remove_all(folder_);
  }

  void start_daemon() {
    daemon_ = fork();
    if (daemon_ != 0) return;
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
    _exit(0);
  }
  void kill_daemon() {
    kill(daemon_, SIGKILL);
    waitpid(daemon_, nullptr, 0);
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
    JobRequest request;
    request.name = "short";
    request.command = {"/bin/sh", "-c", "echo " + key + " >> runs; sleep 0.01"};
    request.folder = folder_.string();
    request.gpu_milli = 1000;
    request.preemptible = false;
    Json body;
    body["key"] = key;
    body["jobs"] = Json::array({Json::parse(to_json(request))});
    try {
      return ask("POST", "/v1/jobs", body.dump()).status == 200;
    } catch (const Error&) {
      return false;
    }
  }
  std::map<std::string, int> runs() const {
    std::map<std::string, int> counts;
    std::ifstream file(folder_ / "runs");
    for (std::string key; file >> key;) ++counts[key];
    return counts;
  }

  fs::path folder_;
  pid_t daemon_ = 0;
};

TEST_F(KillTest, NothingAcknowledgedIsLostOrRunTwice) {
  std::mt19937 random(1);
  std::set<std::string> acknowledged;
  int next = 0;
  double slowest = 0;
  for (int round = 0; round < wanted_kills(); ++round) {
    start_daemon();
    slowest = std::max(slowest, time_to_answer());
    const auto end = Clock::now() + std::chrono::microseconds(random() % 60'000);
    while (Clock::now() < end) {
      const std::string key = "k" + std::to_string(next++);
      if (submit(key)) acknowledged.insert(key);
    }
    kill_daemon();
  }
  start_daemon();
  slowest = std::max(slowest, time_to_answer());
  const auto limit = Clock::now() + std::chrono::seconds(300);
  while (Clock::now() < limit) {
    if (Json::parse(ask("GET", "/v1/jobs?most=1").body)["jobs"].empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const auto counts = runs();
  int lost = 0, twice = 0;
  for (const std::string& key : acknowledged) lost += !counts.contains(key);
  for (const auto& [key, count] : counts) twice += count > 1;
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(twice, 0);
  EXPECT_GT(acknowledged.size(), 0U);
  RecordProperty("acknowledged", static_cast<int>(acknowledged.size()));
  std::printf("%d kills, %zu jobs acknowledged, slowest recovery %.3f s\n", wanted_kills(),
              acknowledged.size(), slowest);
}

}  // namespace
}  // namespace dais::jobs
