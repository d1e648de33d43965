#include "jobs/consolidation.h"

#include <algorithm>
#include <map>

namespace dais::jobs {
namespace {

constexpr size_t most_running = 2048;
constexpr int most_hosts = 8;

struct Movable {
  JobId id;
  const Job* job;
  int64_t gpu_milli;
};
using ByHost = std::map<HostId, std::vector<Movable>>;

bool on_one_host(const Placement& placement) {
  return std::ranges::all_of(placement,
                             [&](const Slot& slot) { return slot.host == placement.front().host; });
}

// Jobs that may be moved, by their host, the smallest first.
ByHost movable_jobs(const Snapshot& now, const Policy& policy, const Claim& claim) {
  ByHost out;
  now.projects().for_each([&](uint64_t, const ProjectState& project) {
    project.buckets.for_each([&](uint64_t, const Bucket& bucket) {
      if (bucket.standing == Standing::tenured || !now.shape(bucket.shape).preemptible ||
          bucket.priority > claim.priority) {
        return;
      }
      bucket.running.for_each([&](uint64_t id, const Bucket::Nothing&) {
        const Job& job = now.jobs().at(id);
        if (!ran_long_enough(now, policy, job) || !on_one_host(*job.placement)) return;
        out[job.placement->front().host].push_back({id, &job, job.spec->shape.total().gpu_milli});
      });
    });
  });
  for (auto& [host, jobs] : out) std::ranges::stable_sort(jobs, {}, &Movable::gpu_milli);
  return out;
}

// Those that must leave a host, smallest first, before it holds one task more; nothing when all of
// them leaving would not do.
std::optional<std::vector<Movable>> to_clear(const Capacity& room, HostId host,
                                             const std::vector<Movable>& jobs, const Shape& task) {
  HostState state = room.host(host);
  const int before = state.room(task);
  std::vector<Movable> gone;
  for (const Movable& one : jobs) {
    state.move(*one.job->placement, 0, one.job->placement->size(), one.job->spec->shape, -1);
    gone.push_back(one);
    if (state.room(task) > before) return gone;
  }
  return std::nullopt;
}

int64_t gpus_of(const std::vector<Movable>& jobs) {
  int64_t sum = 0;
  for (const Movable& one : jobs) sum += one.gpu_milli;
  return sum;
}

// Frees the host where that moves least; false when none is left to free.
bool clear_one(Capacity& room, ByHost& movable, const Shape& shape, std::vector<Movable>& moved) {
  const Shape task = shape.single();
  std::optional<std::vector<Movable>> best;
  HostId where = 0;
  for (const auto& [host, jobs] : movable) {
    auto gone = to_clear(room, host, jobs, task);
    if (!gone || (best && gpus_of(*best) <= gpus_of(*gone))) continue;
    best = std::move(gone);
    where = host;
  }
  if (!best) return false;
  for (const Movable& one : *best) room.give_back(*one.job->placement, one.job->spec->shape);
  moved.insert(moved.end(), best->begin(), best->end());
  movable.erase(where);
  return true;
}

}  // namespace

std::optional<Consolidation> consolidate(const Snapshot& now, const Policy& policy,
                                         const Claim& claim) {
  const int64_t need = claim.shape.total().gpu_milli;
  const bool scattered = need > 0 && need <= now.capacity().gpu_free();
  if (!scattered || now.jobs().size() - now.waiting().size() > most_running) return std::nullopt;
  ByHost movable = movable_jobs(now, policy, claim);
  Capacity room = now.capacity();
  std::vector<Movable> moved;
  std::optional<Placement> placement;
  for (int host = 0; host < most_hosts && !placement; ++host) {
    if (!clear_one(room, movable, claim.shape, moved)) return std::nullopt;
    placement = room.find(claim.shape);
  }
  if (!placement || gpus_of(moved) > need) return std::nullopt;
  Consolidation out;
  room.take(*placement, claim.shape);
  // The largest first: they are the hardest to place.
  std::ranges::stable_sort(
      moved, [](const Movable& a, const Movable& b) { return a.gpu_milli > b.gpu_milli; });
  for (const Movable& one : moved) {
    const auto elsewhere = room.find(one.job->spec->shape);
    if (!elsewhere) return std::nullopt;
    room.take(*elsewhere, one.job->spec->shape);
    out.moved.push_back(one.id);
  }
  out.placement = std::move(*placement);
  return out;
}

}  // namespace dais::jobs
