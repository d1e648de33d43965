#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#include "base/cgroup.h"

#ifdef DAIS_STD_THREADS
#include <thread>
#include <vector>
#else
#include <omp.h>
#endif

namespace dais {
namespace {

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int count_usable_cores() {
  const int allowed = affinity_cores();
  const double quota = cpu_quota_cores().value_or(allowed);
  return std::max(1, static_cast<int>(std::min<double>(allowed, std::ceil(quota))));
}

thread_local int this_team = 0;
thread_local bool inside_team = false;

}  // namespace

int usable_cores() {
  static const int cores = count_usable_cores();
  return cores;
}

void set_team_size(int threads) {
  this_team = std::max(1, threads);
#ifndef DAIS_STD_THREADS
  omp_set_num_threads(this_team);
#endif
}

int team_size() {
  if (this_team == 0) set_team_size(usable_cores());
  return this_team;
}

void parallel_for_ranges(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                         void* context) {
  if (count <= 0) return;
  const int64_t chunks = std::min<int64_t>(team_size(), count / std::max<int64_t>(grain, 1));
  if (chunks < 2 || inside_team) return body(context, 0, count);
  auto chunk = [=](int64_t index) {
    const bool outer = inside_team;
    inside_team = true;
    body(context, count * index / chunks, count * (index + 1) / chunks);
    inside_team = outer;
  };
#ifdef DAIS_STD_THREADS
  std::vector<std::thread> workers;
  for (int64_t index = 1; index < chunks; ++index) workers.emplace_back(chunk, index);
  chunk(0);
  for (auto& worker : workers) worker.join();
#else
  // The run-time may grant fewer threads (a limit, a caller that is itself in a parallel region).
  const int wanted = static_cast<int>(chunks);
#pragma omp parallel num_threads(wanted)
  for (int64_t index = omp_get_thread_num(); index < chunks; index += omp_get_num_threads())
    chunk(index);
#endif
}

}  // namespace dais
