#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "jobs/resources.h"

namespace dais::jobs {

/// Ids are given in order of arrival: a smaller JobId was submitted earlier.
using JobId = uint64_t;
using HostId = uint32_t;
using ProjectId = uint32_t;

inline constexpr ProjectId no_project = std::numeric_limits<ProjectId>::max();
/// Of one host: eight GPUs that MIG divides are 56.
inline constexpr int max_devices = 64;
/// Of the list of devices that one task may name.
inline constexpr int max_parts = 16;
inline constexpr int64_t whole_gpu = 1000;
inline constexpr int64_t unlimited = 1'000'000'000'000'000;

/// CPUs or memory of a host that nobody counts: ample, yet the sum over all hosts stays exact.
inline constexpr int64_t uncounted = 1'000'000'000;

/// What makes two jobs need exactly the same place: a gang of equal tasks, started together or not
/// at all. A task lies on one host; below 1000 gpu_milli it shares one device.
struct Shape {
  int32_t tasks = 1;
  Resources task;
  bool preemptible = true;
  /// What a task asks of several devices, not all of them whole: thousandths of each, the largest
  /// first, 0 behind the last. gpu_milli is their sum. All 0 for any other task.
  std::array<int16_t, max_parts> parts{};

  bool operator==(const Shape&) const = default;
  Resources total() const { return task * tasks; }
  bool mixed() const { return parts[0] != 0; }
  /// How many devices a task lies on.
  int devices() const;
  /// What a task asks of its devices, the largest part first; 0 behind the last.
  int64_t part(int index) const;
  Shape single() const {
    Shape one = *this;
    one.tasks = 1;
    return one;
  }
};

inline int Shape::devices() const {
  if (!mixed()) return static_cast<int>((task.gpu_milli + whole_gpu - 1) / whole_gpu);
  return static_cast<int>(std::count_if(parts.begin(), parts.end(), [](int16_t x) { return x; }));
}

inline int64_t Shape::part(int index) const {
  if (mixed()) return index < max_parts ? parts[static_cast<size_t>(index)] : 0;
  return std::clamp<int64_t>(task.gpu_milli - index * whole_gpu, 0, whole_gpu);
}

/// What a user asked for. Never changes once submitted.
struct JobSpec {
  std::string name;
  ProjectId project = 0;
  int32_t priority = 0;  ///< higher goes first; -1000 to 1000
  Shape shape;
  double time_limit_s = 0;  ///< 0: none
  double min_run_s = 0;     ///< not preempted before it ran this long; 0: the policy's default
  /// Elastic: it may run with any number of tasks between these. The shape says with how many it
  /// runs; while it waits that is the fewest. Both 0: it is not.
  int32_t fewest_tasks = 0, most_tasks = 0;
};

/// Where one task runs. `device` is -1 for a task without GPUs.
struct Slot {
  HostId host = 0;
  int16_t device = -1;
  int16_t task = 0;
  int32_t gpu_milli = 0;

  bool operator==(const Slot&) const = default;
};
using Placement = std::vector<Slot>;

/// Tasks are numbered from 0.
inline int tasks_in(const Placement& placement) {
  int most = -1;
  for (const Slot& slot : placement) most = std::max<int>(most, slot.task);
  return most + 1;
}

enum class JobState : uint8_t {
  waiting,
  running,
  stopping,  ///< preempted: its resources are promised to others, its processes may still be ending
};

/// How firmly a running job holds its place.
enum class Standing : uint8_t {
  backfilled,  ///< started ahead of an older job that did not fit; yields to it
  normal,
  tenured,  ///< by seniority: yields to priorities and quotas only
};

/// An active job as the scheduler sees it. Ended jobs leave the snapshot.
struct Job {
  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const Placement> placement;  ///< null unless running
  double submit_s = 0;
  double start_s = 0;     ///< of the present attempt
  double counted_s = 0;   ///< attained time is accounted up to this moment
  double attained_s = 0;  ///< wall time over all attempts, up to counted_s
  uint64_t due = 0;       ///< key in the snapshot's index of bin crossings while running
  int32_t attempts = 0;
  uint16_t shape = 0;  ///< index into Snapshot's shapes
  uint8_t bin = 0;     ///< bin of attained_s (lifetimes.h)
  Standing standing = Standing::normal;
  JobState state = JobState::waiting;
};

/// A machine with GPUs. Racks are the unit within which hosts talk fast; the devices of one island
/// (device / island_size) talk fast within the host.
struct Host {
  std::string name;
  uint32_t rack = 0;
  int32_t devices = 0;  ///< at most max_devices
  int32_t island_size = max_devices;
  int64_t cpu_milli = uncounted;
  int64_t memory_mib = uncounted;
};

/// A group of users who share the machine. Quotas of children lie within that of their parent.
struct Project {
  std::string name;
  ProjectId parent = no_project;
  Resources quota;  ///< guaranteed; all zero: nothing is. `unlimited` parts are not governed
  Resources limit{unlimited, unlimited, unlimited};  ///< never exceeded
  double weight = 1;                                 ///< share of what no quota claims
};

}  // namespace dais::jobs
