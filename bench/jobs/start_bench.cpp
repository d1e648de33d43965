// How long a job waits for its first instruction on an idle machine, and how long a job of high
// priority waits for the place of a low one that saves nothing, with the stages between. Usage:
// start_bench [COUNT]. Under a real-time priority let it end at a fork (`chrt -R -r 1`): control
// groups refuse such processes.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/span.h"
#include "http/client.h"
#include "http/server.h"
#include "jobs/api.h"
#include "jobs/daemon.h"
#include "jobs/machine.h"

namespace {

namespace fs = std::filesystem;
using namespace dais;        // NOLINT(google-build-using-namespace)
using namespace dais::jobs;  // NOLINT(google-build-using-namespace)

constexpr double most_ms = 10'000;

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
  struct Wait {
    double from_ms = 0, to_ms = 0;
  };
  Wait start_one(int number, int priority, bool stay, int64_t* id = nullptr);
  void print(const char* what, const std::vector<Wait>& waits,
             const std::vector<SpanRecord>& spans);
  std::string endpoint() const { return "unix:" + socket_path(folder_.string()); }

  fs::path folder_;
};

Bench::Wait Bench::start_one(int number, int priority, bool stay, int64_t* id) {
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
  while (!fs::exists(path)) {
    if (now_ms() - start > most_ms) throw Error(Code::unavailable, "a job was not started in 10 s");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  double stamped = 0;
  std::ifstream(path) >> stamped;
  return {start, stamped};
}

double at(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// Stages of the daemon that lie within each wait, summed up by name; the rest is the way to the
// daemon, the start of the program and the waiting of either for a core.
void Bench::print(const char* what, const std::vector<Wait>& waits,
                  const std::vector<SpanRecord>& spans) {
  std::vector<double> times;
  for (const Wait& wait : waits) times.push_back(wait.to_ms - wait.from_ms);
  std::sort(times.begin(), times.end());
  std::printf("%-32s median %.2f ms, p99 %.2f ms, most %.2f ms, %zu times\n", what, at(times, 0.5),
              at(times, 0.99), times.back(), times.size());
  const double slow_ms = at(times, 0.95);
  std::map<std::string, std::vector<double>> stages;
  std::map<std::string, double> slow;
  for (const Wait& wait : waits) {
    std::map<std::string, double> here;
    for (const SpanRecord& span : spans) {
      const double from = span.start * 1e3;
      if (from < wait.from_ms || from > wait.to_ms) continue;
      here[span.name] += std::min(span.seconds * 1e3, wait.to_ms - from);
    }
    for (const auto& [name, ms] : here) {
      stages[name].push_back(ms);
      if (wait.to_ms - wait.from_ms >= slow_ms) slow[name] += ms;
    }
  }
  const auto slowest = static_cast<double>(
      std::ranges::count_if(times, [slow_ms](double ms) { return ms >= slow_ms; }));
  for (auto& [name, ms] : stages) {
    std::sort(ms.begin(), ms.end());
    std::printf("  %-30s median %.2f ms, p99 %.2f ms; %.2f ms of the slowest twentieth\n",
                name.c_str(), at(ms, 0.5), at(ms, 0.99), slow[name] / slowest);
  }
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
  const SpanLog log;
  std::thread loop([&daemon] { daemon.run(); });
  std::vector<Wait> idle, preempting;
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
  daemon.stop();
  loop.join();
  print("submit to first instruction", idle, log.records());
  print("with a preemption before it", preempting, log.records());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return stamp(argv[2], std::strcmp(argv[1], "--stay") == 0);
  signal(SIGPIPE, SIG_IGN);
  try {
    Bench().run(argc > 1 ? std::atoi(argv[1]) : 200);
  } catch (const Error& error) {
    std::fprintf(stderr, "start_bench: %s\n", error.what());
    std::_Exit(2);  // the daemon's threads still run
  }
}
