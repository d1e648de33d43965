#pragma once

#include <optional>

#include "jobs/capacity.h"
#include "jobs/flat_index.h"
#include "jobs/lifetimes.h"
#include "jobs/model.h"
#include "jobs/persistent_map.h"
#include "jobs/policy.h"

namespace dais::jobs {

/// Jobs of one project that any policy sees alike: same priority, shape, bin of attained time and
/// standing. Within it, the older goes first.
struct Bucket {
  struct Nothing {};
  int32_t priority = 0;
  uint16_t shape = 0;
  uint8_t bin = 0;
  Standing standing = Standing::normal;
  float score = 0;                 ///< completions per second and GPU, or the queue of `las`
  PersistentMap<Nothing> waiting;  ///< by JobId
  PersistentMap<Nothing> running;
};

using BucketKey = uint64_t;
/// Where a project keeps a bucket: small numbers, so that finding one takes a step or two.
using BucketSlot = uint64_t;

/// What a key in ProjectState::heads says: the exact priority and a score not below the bucket's.
struct HeadRank {
  int32_t priority;
  float score;
};
HeadRank best_rank(uint64_t head_key);

/// What a key in ProjectState::tails says: the exact priority, and a standing and a score not above
/// those of the bucket.
struct TailRank {
  int32_t priority;
  Standing standing;
  float score;
};
TailRank least_rank(uint64_t tail_key);

struct ProjectState {
  std::shared_ptr<const Project> spec;
  Resources allocated;   ///< by its own jobs and those of its descendants
  int32_t children = 0;  ///< only projects without any hold jobs
  int64_t waiting = 0;   ///< own jobs
  int64_t running = 0;
  double usage_gpu_s = 0;  ///< GPU seconds, decayed up to usage_at_s
  double usage_at_s = 0;
  int64_t completions = 0;  ///< since its outlook was last renewed
  double renewed_s = 0;
  PersistentMap<Bucket> buckets;  ///< by BucketSlot
  FlatIndex slots;                ///< BucketSlot by BucketKey
  FlatIndex heads;                ///< slots of buckets with waiting jobs, best first
  FlatIndex tails;                ///< slots of those with preemptible running jobs, least first

  /// The slot of a bucket that exists.
  BucketSlot slot_of(BucketKey key) const;
  /// A slot for a new bucket.
  BucketSlot add_slot(BucketKey key);
};

/// Everything a decision depends on, as one value. Copies are cheap (a few pointers) and share
/// structure, so that each cycle can keep the one it decided on; the events below change a copy in
/// time that grows with the logarithm of its size. Used by one thread at a time.
///
/// Events throw invalid_argument when the caller's values are wrong and check what only a bug of
/// dais can cause, such as booking a GPU twice.
class Snapshot {
 public:
  /// The ordering decides which indexes are kept; decide() must be given a policy with the same.
  explicit Snapshot(const Policy& policy = {});

  // ---- Events
  /// Time goes on: jobs cross bins, use decays. Never backwards: an earlier time changes nothing.
  void advance(double now_s);
  HostId add_host(Host host);
  void set_host_open(HostId id, bool open);
  void set_device_open(HostId id, int device, bool open);
  ProjectId add_project(Project project);
  void set_project(ProjectId id, Project project);
  /// GPU seconds that a project used before this snapshot knew of it, decayed up to now.
  void add_usage(ProjectId id, double gpu_s);
  JobId submit(std::shared_ptr<const JobSpec> spec);
  /// The job gets its place; the placement must be free. It tells how many tasks an elastic job
  /// runs with until it stops.
  void start(JobId id, Placement placement, Standing standing);
  /// A running job becomes tenured.
  void promote(JobId id);
  /// The job loses its place and cannot start again before stopped().
  void preempt(JobId id);
  void stopped(JobId id);
  /// The job leaves for good. `completed` tells whether its run time says how long such jobs last.
  void end(JobId id, bool completed);

  // ---- What is there
  double now_s() const { return now_s_; }
  const Capacity& capacity() const { return capacity_; }
  const PersistentMap<Job>& jobs() const { return jobs_; }
  const PersistentMap<ProjectState>& projects() const { return projects_; }
  const ProjectState& project(ProjectId id) const { return projects_.at(id); }
  const Shape& shape(uint16_t index) const { return *shapes_.at(index).shape; }
  const Lifetimes& lifetimes() const { return lifetimes_; }
  Ordering ordering() const { return ordering_; }
  /// Waiting jobs of all projects, oldest first.
  const PersistentMap<Bucket::Nothing>& waiting() const { return waiting_; }
  /// Running jobs that waited for the policy's tenure_wait_s in all and are not tenured.
  const PersistentMap<Bucket::Nothing>& entitled() const { return entitled_; }
  int64_t tenured_gpu_milli() const { return tenured_gpu_milli_; }
  /// Running elastic jobs that would take more tasks.
  const PersistentMap<Bucket::Nothing>& growing() const { return growing_; }
  /// How long a job has waited in all up to now.
  double waited_s(const Job& job) const { return now_s_ - job.submit_s - attained_s(job); }
  /// Waiting jobs that ask for no GPU.
  int64_t waiting_gpuless() const { return waiting_gpuless_; }
  bool has_quotas() const { return quotas_ > 0; }
  /// When the next job crosses a bin; infinite if none runs.
  double next_change_s() const;
  /// Wall time over all attempts up to now.
  double attained_s(const Job& job) const;
  /// Decayed GPU seconds of a project up to now.
  double usage_gpu_s(const ProjectState& project) const;

  /// Throws `internal` unless every index equals one rebuilt from the jobs alone. Slow; for tests.
  void verify() const;

 private:
  struct ShapeEntry {
    std::shared_ptr<const Shape> shape;
    int64_t jobs = 0;
  };

  void verify_job(JobId id, const Job& job) const;
  void verify_project(ProjectId id, const ProjectState& state) const;
  uint16_t intern(const Shape& shape);
  void release_shape(uint16_t index);
  BucketKey bucket_key(const Job& job) const;
  int32_t ordered_priority(const Job& job) const;
  float score(ProjectId project, uint16_t shape, uint8_t bin) const;
  BucketSlot bucket_for(ProjectState& project, const Job& job) const;
  void enter(JobId id, const Job& job);
  void leave(JobId id, const Job& job);
  void account(Job& job);
  void allocate(ProjectId id, const Resources& amount);
  void release_place(JobId id, Job& job);
  void resize(Job& job, int tasks);
  void learn_size(ProjectId project, int size);
  void renew_outlook(ProjectId id);
  void check_project(ProjectId id, const Project& project) const;

  double now_s_ = 0;
  Ordering ordering_;
  double half_life_s_;
  double las_threshold_gpu_s_;
  double tenure_wait_s_;
  JobId next_job_ = 1;
  ProjectId next_project_ = 0;
  int quotas_ = 0;
  int64_t waiting_gpuless_ = 0;
  int64_t tenured_gpu_milli_ = 0;
  Capacity capacity_;
  Lifetimes lifetimes_;
  PersistentMap<Job> jobs_;
  PersistentMap<ProjectState> projects_;
  PersistentMap<ShapeEntry> shapes_;
  PersistentMap<Outlook> outlooks_;  // [project 32][size class 8]
  PersistentMap<Bucket::Nothing> waiting_;
  PersistentMap<Bucket::Nothing> entitled_;
  PersistentMap<Bucket::Nothing> growing_;
  PersistentMap<JobId> due_;  // [milliseconds of the crossing 44][job 20]
};

}  // namespace dais::jobs
