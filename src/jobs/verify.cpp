// Rebuilds what the indexes of a snapshot should say from its jobs and hosts alone.
#include <cmath>
#include <map>
#include <set>

#include "jobs/snapshot.h"

namespace dais::jobs {

void Capacity::verify() const {
  size_t open = 0, shared = 0;
  int64_t free = 0, whole = 0;
  std::map<uint32_t, int32_t> racks;
  hosts_.for_each([&](uint64_t id, const HostState& state) {
    if (!state.open) return;
    ++open;
    const auto count = static_cast<uint64_t>(state.whole_free());
    DAIS_CHECK(by_whole_.contains((count << 56) | (uint64_t{state.host->rack} << 32) | id));
    whole += static_cast<int64_t>(count) * whole_gpu;
    racks[state.host->rack] += static_cast<int32_t>(count);
    for (int device = 0; device < state.host->devices; ++device) {
      if ((state.closed_devices >> device) & 1) continue;
      const auto gap = static_cast<uint64_t>(state.gpu_free[device]);
      free += state.gpu_free[device];
      if (gap == 0 || gap == static_cast<uint64_t>(whole_gpu)) continue;
      ++shared;
      DAIS_CHECK(by_gap_.contains((gap << 40) | (id << 8) | static_cast<uint64_t>(device)));
    }
  });
  DAIS_CHECK(by_whole_.size() == open && by_gap_.size() == shared);
  DAIS_CHECK(free == gpu_free_ && whole == whole_free_);
  size_t racks_with_room = 0;
  for (const auto& [rack, count] : racks) {
    const int32_t* counted = rack_free_.find(rack);
    DAIS_CHECK((counted ? *counted : 0) == count);
    racks_with_room += count > 0;
    DAIS_CHECK(count == 0 || by_rack_.contains((static_cast<uint64_t>(count) << 32) | rack));
  }
  DAIS_CHECK(by_rack_.size() == racks_with_room);
}

void Snapshot::verify_job(JobId id, const Job& job) const {
  DAIS_CHECK(shapes_.contains(job.shape) && shape(job.shape) == job.spec->shape);
  DAIS_CHECK((job.state == JobState::running) == (job.placement != nullptr));
  DAIS_CHECK((job.state == JobState::waiting) == waiting_.contains(id));
  const bool grows = job.state == JobState::running && job.spec->shape.tasks < job.spec->most_tasks;
  DAIS_CHECK(grows == growing_.contains(id));
  if (job.state == JobState::stopping) return;
  const ProjectState& state = projects_.at(job.spec->project);
  const Bucket& bucket = state.buckets.at(state.slot_of(bucket_key(job)));
  DAIS_CHECK(bucket.priority == ordered_priority(job) && bucket.bin == job.bin);
  DAIS_CHECK(bucket.waiting.contains(id) == (job.state == JobState::waiting));
  DAIS_CHECK(bucket.running.contains(id) == (job.state == JobState::running));
  if (job.state != JobState::running || !std::isfinite(lifetime_bin_end(job.bin))) return;
  DAIS_CHECK(due_.at(job.due) == id);
}

void Snapshot::verify_project(ProjectId id, const ProjectState& state) const {
  int64_t waiting = 0, running = 0;
  size_t heads = 0, tails = 0;
  state.buckets.for_each([&](uint64_t, const Bucket& bucket) {
    DAIS_CHECK(!bucket.waiting.empty() || !bucket.running.empty());
    waiting += static_cast<int64_t>(bucket.waiting.size());
    running += static_cast<int64_t>(bucket.running.size());
    heads += !bucket.waiting.empty();
    tails += !bucket.running.empty() && shape(bucket.shape).preemptible;
    DAIS_CHECK(bucket.score == score(id, bucket.shape, bucket.bin));
  });
  DAIS_CHECK(waiting == state.waiting && running == state.running);
  DAIS_CHECK(state.slots.size() == state.buckets.size());
  DAIS_CHECK(heads == state.heads.size() && tails == state.tails.size());
  for (const auto& head : state.heads) DAIS_CHECK(!state.buckets.at(head.value).waiting.empty());
  for (const auto& tail : state.tails) DAIS_CHECK(!state.buckets.at(tail.value).running.empty());
}

void Snapshot::verify() const {
  capacity_.verify();
  Capacity rebuilt = capacity_;
  std::map<ProjectId, Resources> allocated;
  std::map<ProjectId, int64_t> members;
  size_t waiting = 0, crossings = 0;
  int64_t tenured = 0;
  jobs_.for_each([&](uint64_t id, const Job& job) {
    verify_job(id, job);
    waiting += job.state == JobState::waiting;
    if (job.state != JobState::stopping) ++members[job.spec->project];
    if (job.state != JobState::running) return;
    crossings += std::isfinite(lifetime_bin_end(job.bin));
    const Resources need = job.spec->shape.total();
    if (job.standing == Standing::tenured) tenured += need.gpu_milli;
    rebuilt.give_back(*job.placement, job.spec->shape);
    ProjectId up = job.spec->project;
    for (; up != no_project; up = projects_.at(up).spec->parent) allocated[up] += need;
  });
  DAIS_CHECK(waiting == waiting_.size() && crossings == due_.size());
  DAIS_CHECK(tenured == tenured_gpu_milli_);
  projects_.for_each([&](uint64_t id, const ProjectState& state) {
    const auto project = static_cast<ProjectId>(id);
    DAIS_CHECK(state.allocated == allocated[project]);
    DAIS_CHECK(state.waiting + state.running == members[project]);
    verify_project(project, state);
  });
  // With every job's place returned, nothing may be in use.
  for (HostId id = 0; id < rebuilt.hosts(); ++id) {
    const HostState& state = rebuilt.host(id);
    for (int device = 0; device < state.host->devices; ++device) {
      DAIS_CHECK(state.gpu_free[device] == whole_gpu);
    }
    DAIS_CHECK(state.cpu_free == state.host->cpu_milli);
    DAIS_CHECK(state.memory_free == state.host->memory_mib);
  }
}

}  // namespace dais::jobs
