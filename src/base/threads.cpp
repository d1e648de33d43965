#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>

#include "base/cgroup.h"
#include "base/span.h"

#ifdef DAIS_STD_THREADS
#include <thread>
#include <vector>
#else
#include <dlfcn.h>

#include <cstdlib>
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

#ifndef DAIS_STD_THREADS

/// The functions of libgomp that the pool needs. It is opened here instead of linked, as it reads
/// GOMP_SPINCOUNT when it is loaded: by default its threads spin for milliseconds after a region,
/// which starves whatever runs next.
struct Gomp {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags) = nullptr;
  int (*thread_num)() = nullptr;
  int (*num_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;

  bool found() const { return parallel && thread_num && num_threads && set_num_threads; }
};

template <typename Function>
void find(void* handle, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(handle, name));
}

/// Without libgomp everything runs on the calling thread.
const Gomp& gomp() {
  static const Gomp opened = [] {
    setenv("GOMP_SPINCOUNT", "10000", 0);
    Gomp out;
    void* handle = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) return out;
    find(handle, "GOMP_parallel", out.parallel);
    find(handle, "omp_get_thread_num", out.thread_num);
    find(handle, "omp_get_num_threads", out.num_threads);
    find(handle, "omp_set_num_threads", out.set_num_threads);
    return out;
  }();
  return opened;
}

bool pool_exists() { return gomp().found(); }

#else

bool pool_exists() { return true; }

#endif

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
  if (gomp().found()) gomp().set_num_threads(this_team);
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
  if (chunks < 2 || inside_team || !pool_exists()) return body(context, 0, count);
  auto chunk = [=](int64_t index) {
    const bool outer = inside_team;
    inside_team = true;
    const Span span("chunk", {}, {}, static_cast<int>(index));
    body(context, count * index / chunks, count * (index + 1) / chunks);
    inside_team = outer;
  };
#ifdef DAIS_STD_THREADS
  std::vector<std::thread> workers;
  for (int64_t index = 1; index < chunks; ++index) workers.emplace_back(chunk, index);
  chunk(0);
  for (auto& worker : workers) worker.join();
#else
  struct Region {
    decltype(chunk)& run;
    int64_t chunks;
  } region{chunk, chunks};
  // The run-time may grant fewer threads (a limit, a caller that is itself in a parallel region).
  const auto share = [](void* context) {
    const auto& mine = *static_cast<Region*>(context);
    for (int64_t index = gomp().thread_num(); index < mine.chunks; index += gomp().num_threads())
      mine.run(index);
  };
  gomp().parallel(share, &region, static_cast<unsigned>(chunks), 0);
#endif
}

}  // namespace dais
