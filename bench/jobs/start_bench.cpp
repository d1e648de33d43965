// How long a job waits for its first instruction on an idle machine, and how long a job of high
// priority waits for the place of a low one that saves nothing. Usage: start_bench [COUNT]
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "http/client.h"
#include "http/server.h"
#include "jobs/api.h"
#include "jobs/daemon.h"
#include "jobs/machine.h"

namespace {

namespace fs = std::filesystem;
using namespace dais;
using namespace dais::jobs;

double now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// What a job runs: its first instruction, give or take the start of a C++ program.
int stamp(const char* path, bool stay) {
  std::ofstream(std::string(path) + ".part") << std::to_string(now_ms());
  fs::rename(std::string(path) + ".part", path);
  if (stay) pause();
  return 0;
}

class Bench {
 public:
  Bench() : folder_(fs::temp_directory_path() / ("dais_start_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Bench() { fs::remove_all(folder_); }

  void run(int count);

 private:
  double start_one(int number, int priority, bool stay, int64_t* id = nullptr);
  std::string endpoint() const { return "unix:" + socket_path(folder_.string()); }

  fs::path folder_;
};

double Bench::start_one(int number, int priority, bool stay, int64_t* id) {
  const std::string path = (folder_ / ("stamp" + std::to_string(number))).string();
  JobRequest request;
  request.name = "stamp";
  request.command = {fs::read_symlink("/proc/self/exe").string(), stay ? "--stay" : "--stamp",
                     path};
  request.folder = folder_.string();
  request.gpu_milli = 4000;
  request.priority = priority;
  request.min_run_s = 0.001;
  nlohmann::ordered_json body;
  body["jobs"] = nlohmann::ordered_json::array({nlohmann::ordered_json::parse(to_json(request))});
  const double start = now_ms();
  const auto answer = http::request(endpoint(), "POST", "/v1/jobs", body.dump());
  if (id) *id = nlohmann::json::parse(answer.body)["ids"][0];
  while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::microseconds(200));
  double stamped = 0;
  std::ifstream(path) >> stamped;
  return stamped - start;
}

void print(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&times](double part) {
    return times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))];
  };
  std::printf("%-32s median %.2f ms, p99 %.2f ms, most %.2f ms, %zu times\n", what, at(0.5),
              at(0.99), at(1), times.size());
}

void Bench::run(int count) {
  Host host;
  host.name = "bench";
  host.devices = 4;
  host.cpu_milli = 64'000;
  host.memory_mib = 65'536;
  Daemon daemon({folder_, host, policy_named("default"), steady_now_s, 64 << 20});
  Api api(daemon);
  http::Server server([&api](const http::Request& request) { return api.answer(request); });
  server.listen_unix(socket_path(folder_.string()), 0600);
  std::thread loop([&daemon] { daemon.run(); });
  std::vector<double> idle, preempting;
  int number = 0;
  for (int i = 0; i < count; ++i) {
    idle.push_back(start_one(number++, 0, false));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (int i = 0; i < count; ++i) {
    int64_t low = 0;
    start_one(number++, 0, true, &low);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    preempting.push_back(start_one(number++, 100, false));
    http::request(endpoint(), "POST", "/v1/jobs/" + std::to_string(low) + "/cancel");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  print("submit to first instruction", idle);
  print("with a preemption before it", preempting);
  daemon.stop();
  loop.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return stamp(argv[2], std::strcmp(argv[1], "--stay") == 0);
  signal(SIGPIPE, SIG_IGN);
  Bench().run(argc > 1 ? std::atoi(argv[1]) : 200);
}
