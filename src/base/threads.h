#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace dais {

/// Cores this process may really use: the smaller of its affinity mask and its cgroup CPU quota
/// (v1 or v2, rounded up), at least 1.
int usable_cores();

/// Threads of the one compute pool used by parallel_for calls of this thread (and by oneDNN).
/// Defaults to usable_cores(); clamped to at least 1.
void set_team_size(int threads);
int team_size();

/// Calls body(begin, end) over a partition of [0, count). Chunks hold at least `grain` items; a
/// count below two grains runs on the calling thread without waking the pool. The partition depends
/// on count, grain and team size only. The body must not throw; nested calls run serially.
void parallel_for_ranges(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                         void* context);

template <typename Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_for_ranges(
      count, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Plain*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace dais
