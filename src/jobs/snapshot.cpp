#include "jobs/snapshot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace dais::jobs {
namespace {

constexpr int64_t renew_after_completions = 16;
constexpr double renew_after_s = 3600;
constexpr uint32_t best_score = 0xffffff;

// Positive floats order like their bits; the top 24 of 31 keep four decimal digits.
uint32_t score_bits(float score) { return std::bit_cast<uint32_t>(std::max(score, 0.0f)) >> 7; }

uint64_t biased(int32_t priority) { return static_cast<uint64_t>(priority + 32'768) & 0xffff; }

// Highest priority first, then best score.
uint64_t head_key(const Bucket& bucket) {
  return ((0xffff - biased(bucket.priority)) << 48) |
         (uint64_t{best_score - score_bits(bucket.score)} << 24) | (uint64_t{bucket.shape} << 8) |
         bucket.bin;
}

// Lowest priority first, then the loosest standing, then least score.
uint64_t tail_key(const Bucket& bucket) {
  uint32_t score = score_bits(bucket.score);
  if (bucket.standing == Standing::backfilled) score = 0;
  if (bucket.standing == Standing::tenured) score = best_score;
  return (biased(bucket.priority) << 48) | (uint64_t{score} << 24) | (uint64_t{bucket.shape} << 8) |
         bucket.bin;
}

uint64_t outlook_key(ProjectId project, int size) {
  return (uint64_t{project} << 8) | static_cast<uint64_t>(size);
}

// Whether the guarantees given out stay within the one they come from, where that one governs.
bool covered(const Resources& given, const Resources& owned) {
  auto part = [](int64_t given_part, int64_t owned_part) {
    return owned_part >= unlimited || given_part <= owned_part;
  };
  return part(given.gpu_milli, owned.gpu_milli) && part(given.cpu_milli, owned.cpu_milli) &&
         part(given.memory_mib, owned.memory_mib);
}

// Parts of several devices: at least two, the largest first, not all of them whole.
bool well_formed(const Shape& shape) {
  int64_t sum = 0;
  for (int i = 0; i < max_parts; ++i) {
    if (shape.part(i) < shape.part(i + 1)) return false;
    sum += shape.part(i);
  }
  const int last = shape.devices() - 1;
  return sum == shape.task.gpu_milli && shape.part(0) <= whole_gpu && last > 0 &&
         shape.part(last) > 0 && shape.part(last) < whole_gpu;
}

void check_shape(const JobSpec& spec) {
  const Shape& shape = spec.shape;
  auto refuse = [&spec](std::string what, std::string remedy) {
    throw Error(Code::invalid_argument, std::move(what), "job '" + spec.name + "'",
                std::move(remedy));
  };
  if (shape.tasks < 1 || shape.tasks > 32'000) {
    refuse("a gang of " + std::to_string(shape.tasks) + " tasks", "Use 1 to 32000");
  }
  if (spec.most_tasks != 0 && (spec.fewest_tasks != shape.tasks || spec.most_tasks < shape.tasks ||
                               spec.most_tasks > 32'000)) {
    refuse("an elastic job of " + std::to_string(shape.tasks) + " to " +
               std::to_string(spec.most_tasks) + " tasks",
           "Use a range within 1 to 32000");
  }
  if (shape.task.gpu_milli < 0 || shape.task.cpu_milli < 0 || shape.task.memory_mib < 0) {
    refuse("a negative amount of resources", "Use 0 or more");
  }
  const int64_t gpu = shape.task.gpu_milli;
  if (shape.mixed()) {
    if (!well_formed(shape)) refuse("parts of devices that do not make up a task", "Sort them");
  } else if (gpu > max_devices * whole_gpu || (gpu > whole_gpu && gpu % whole_gpu != 0)) {
    refuse("a task cannot use " + std::to_string(gpu) + " thousandths of a GPU",
           "Use a fraction below 1, or whole GPUs up to " + std::to_string(max_devices));
  }
  if (shape.task.cpu_milli > uncounted || shape.task.memory_mib > uncounted) {
    refuse("a task asks for more CPUs or memory than any host has", "Ask for less");
  }
  if (spec.priority < -1000 || spec.priority > 1000) {
    refuse("priority " + std::to_string(spec.priority), "Use -1000 to 1000");
  }
}

}  // namespace

HeadRank best_rank(uint64_t head_key) {
  const uint32_t bits = best_score - (static_cast<uint32_t>(head_key >> 24) & best_score);
  return {0xffff - static_cast<int32_t>(head_key >> 48) - 32'768,
          std::bit_cast<float>(((bits + 1) << 7) & 0x7fffffff)};
}

TailRank least_rank(uint64_t tail_key) {
  const auto bits = static_cast<uint32_t>(tail_key >> 24) & best_score;
  const int32_t priority = static_cast<int32_t>(tail_key >> 48) - 32'768;
  if (bits == 0) return {priority, Standing::backfilled, 0};
  if (bits == best_score) return {priority, Standing::tenured, 0};
  return {priority, Standing::normal, std::bit_cast<float>(bits << 7)};
}

BucketSlot ProjectState::slot_of(BucketKey key) const {
  const FlatIndex::Entry* found = slots.lower_bound(key);
  DAIS_CHECK(found != slots.end() && found->key == key);
  return found->value;
}

BucketSlot ProjectState::add_slot(BucketKey key) {
  BucketSlot slot = 0;
  if (!buckets.empty()) {
    slot = buckets.last()->first + 1;
    // Mostly gaps: the first of them.
    if (slot > 2 * buckets.size() + 64) {
      for (slot = 0; buckets.contains(slot);) ++slot;
    }
  }
  slots.add(key, slot);
  return slot;
}

Snapshot::Snapshot(const Policy& policy)
    : ordering_(policy.ordering),
      half_life_s_(policy.half_life_s),
      las_threshold_gpu_s_(policy.las_threshold_gpu_s),
      tenure_wait_s_(policy.tenure_wait_s) {}

// ---- Time

void Snapshot::advance(double now_s) {
  for (auto next = due_.first(); next; next = due_.first()) {
    const double at_s = static_cast<double>(next->first >> 20) / 1000;
    if (at_s > now_s) break;
    const JobId id = *next->second;
    now_s_ = std::max(now_s_, at_s);
    Job& job = jobs_.edit(id);
    leave(id, job);
    account(job);
    // The crossing was booked for the end of this bin; rounding must not book it again.
    job.bin = static_cast<uint8_t>(std::max(job.bin + 1, lifetime_bin(job.attained_s)));
    enter(id, job);
  }
  now_s_ = std::max(now_s_, now_s);
}

double Snapshot::next_change_s() const {
  const auto next = due_.first();
  if (!next) return std::numeric_limits<double>::infinity();
  return static_cast<double>(next->first >> 20) / 1000;
}

double Snapshot::attained_s(const Job& job) const {
  return job.state == JobState::running ? job.attained_s + now_s_ - job.counted_s : job.attained_s;
}

double Snapshot::usage_gpu_s(const ProjectState& project) const {
  const double elapsed_s = now_s_ - project.usage_at_s;
  const double kept = std::exp2(-elapsed_s / half_life_s_);
  const double gpus = static_cast<double>(project.allocated.gpu_milli) / whole_gpu;
  return project.usage_gpu_s * kept + gpus * (half_life_s_ / std::log(2.0)) * (1 - kept);
}

void Snapshot::account(Job& job) {
  const double ran_s = now_s_ - job.counted_s;
  if (job.state != JobState::running || ran_s <= 0) return;
  lifetimes_.spent(job.spec->project, size_class(job.spec->shape), job.attained_s,
                   job.attained_s + ran_s);
  job.attained_s += ran_s;
  job.counted_s = now_s_;
}

// ---- Hosts and projects

HostId Snapshot::add_host(Host host) { return capacity_.add_host(std::move(host)); }

void Snapshot::set_host_open(HostId id, bool open) { capacity_.set_open(id, open); }

void Snapshot::set_device_open(HostId id, int device, bool open) {
  capacity_.set_device_open(id, device, open);
}

void Snapshot::check_project(ProjectId id, const Project& project) const {
  auto refuse = [&project](std::string what, std::string remedy) {
    throw Error(Code::invalid_argument, std::move(what), "project '" + project.name + "'",
                std::move(remedy));
  };
  if (!(project.weight > 0)) refuse("the weight is not above 0", "Use 1 for an equal share");
  if (!project.quota.within(project.limit))
    refuse("the quota exceeds the limit", "Raise the limit");
  Resources siblings = project.quota, children;
  projects_.for_each([&](uint64_t other, const ProjectState& state) {
    if (other == id) return;
    if (state.spec->parent == project.parent) siblings += state.spec->quota;
    if (state.spec->parent == id) children += state.spec->quota;
  });
  if (!covered(children, project.quota)) {
    refuse("its children are guaranteed more than it is", "Lower their quotas or raise this one");
  }
  if (project.parent == no_project) return;
  const ProjectState* parent = projects_.find(project.parent);
  if (!parent) refuse("its parent does not exist", "Add the parent first");
  if (parent->waiting + parent->running + parent->allocated.gpu_milli > 0 &&
      parent->children == 0) {
    refuse("its parent has jobs", "Use a parent without jobs");
  }
  if (!covered(siblings, parent->spec->quota)) {
    refuse("with its siblings it is guaranteed more than '" + parent->spec->name + "' is",
           "Lower a quota or raise that of the parent");
  }
}

ProjectId Snapshot::add_project(Project project) {
  check_project(no_project - 1, project);
  quotas_ += project.quota != Resources{};
  if (project.parent != no_project) ++projects_.edit(project.parent).children;
  ProjectState state;
  state.usage_at_s = now_s_;
  state.spec = std::make_shared<const Project>(std::move(project));
  projects_.set(next_project_, std::move(state));
  return next_project_++;
}

void Snapshot::set_project(ProjectId id, Project project) {
  if (!projects_.contains(id)) {
    throw Error(Code::not_found, "no such project", "project '" + project.name + "'");
  }
  ProjectState& state = projects_.edit(id);
  if (state.spec->parent != project.parent) {
    throw Error(Code::invalid_argument, "a project cannot change its parent",
                "project '" + project.name + "'", "Add a new project under the other parent");
  }
  check_project(id, project);
  quotas_ += (project.quota != Resources{}) - (state.spec->quota != Resources{});
  state.spec = std::make_shared<const Project>(std::move(project));
}

void Snapshot::allocate(ProjectId id, const Resources& amount) {
  for (; id != no_project; id = projects_.at(id).spec->parent) {
    ProjectState& state = projects_.edit(id);
    state.usage_gpu_s = usage_gpu_s(state);
    state.usage_at_s = now_s_;
    state.allocated += amount;
  }
}

void Snapshot::add_usage(ProjectId id, double gpu_s) {
  if (!projects_.contains(id)) throw Error(Code::not_found, "no such project");
  for (; id != no_project; id = projects_.at(id).spec->parent) {
    ProjectState& state = projects_.edit(id);
    state.usage_gpu_s = usage_gpu_s(state) + gpu_s;
    state.usage_at_s = now_s_;
  }
}

// ---- Jobs

JobId Snapshot::submit(std::shared_ptr<const JobSpec> spec) {
  check_shape(*spec);
  if (!projects_.contains(spec->project)) {
    throw Error(Code::not_found, "no such project", "job '" + spec->name + "'",
                "Add the project first");
  }
  if (projects_.at(spec->project).children > 0) {
    throw Error(Code::invalid_argument, "the project is divided into others",
                "job '" + spec->name + "'", "Submit to one of them");
  }
  Job job;
  job.shape = intern(spec->shape);
  job.submit_s = now_s_;
  job.spec = std::move(spec);
  if (ordering_ == Ordering::standard) {
    learn_size(job.spec->project, size_class(job.spec->shape));
  }
  const JobId id = next_job_++;
  enter(id, job);
  jobs_.set(id, std::move(job));
  return id;
}

void Snapshot::start(JobId id, Placement placement, Standing standing) {
  Job& job = jobs_.edit(id);
  DAIS_CHECK(job.state == JobState::waiting && !placement.empty());
  leave(id, job);
  if (job.spec->most_tasks > 0) {
    resize(job, tasks_in(placement));
    if (job.spec->shape.tasks < job.spec->most_tasks) growing_.set(id, {});
  }
  capacity_.take(placement, job.spec->shape);
  allocate(job.spec->project, job.spec->shape.total());
  job.placement = std::make_shared<const Placement>(std::move(placement));
  job.state = JobState::running;
  job.start_s = job.counted_s = now_s_;
  ++job.attempts;
  job.standing = standing;
  if (standing == Standing::tenured) {
    tenured_gpu_milli_ += job.spec->shape.total().gpu_milli;
  } else if (waited_s(job) >= tenure_wait_s_) {
    entitled_.set(id, {});
  }
  enter(id, job);
}

void Snapshot::promote(JobId id) {
  Job& job = jobs_.edit(id);
  DAIS_CHECK(job.state == JobState::running && job.standing != Standing::tenured);
  leave(id, job);
  entitled_.erase(id);
  job.standing = Standing::tenured;
  tenured_gpu_milli_ += job.spec->shape.total().gpu_milli;
  enter(id, job);
}

void Snapshot::release_place(JobId id, Job& job) {
  DAIS_CHECK(job.state == JobState::running);
  account(job);
  leave(id, job);
  capacity_.give_back(*job.placement, job.spec->shape);
  allocate(job.spec->project, job.spec->shape.total() * -1);
  if (job.standing == Standing::tenured) {
    tenured_gpu_milli_ -= job.spec->shape.total().gpu_milli;
  }
  entitled_.erase(id);
  growing_.erase(id);
  job.standing = Standing::normal;
  job.placement.reset();
}

// Of a job that is in no index.
void Snapshot::resize(Job& job, int tasks) {
  if (tasks < job.spec->fewest_tasks || tasks > job.spec->most_tasks) {
    throw Error(Code::invalid_argument, "a place for " + std::to_string(tasks) + " tasks",
                "job '" + job.spec->name + "'");
  }
  if (tasks == job.spec->shape.tasks) return;
  auto spec = std::make_shared<JobSpec>(*job.spec);
  spec->shape.tasks = tasks;
  release_shape(job.shape);
  job.shape = intern(spec->shape);
  job.spec = std::move(spec);
  if (ordering_ == Ordering::standard) learn_size(job.spec->project, size_class(job.spec->shape));
}

void Snapshot::preempt(JobId id) {
  Job& job = jobs_.edit(id);
  release_place(id, job);
  if (job.spec->most_tasks > 0) resize(job, job.spec->fewest_tasks);
  job.state = JobState::stopping;
}

void Snapshot::stopped(JobId id) {
  Job& job = jobs_.edit(id);
  DAIS_CHECK(job.state == JobState::stopping);
  job.state = JobState::waiting;
  job.bin = static_cast<uint8_t>(lifetime_bin(job.attained_s));
  enter(id, job);
}

void Snapshot::end(JobId id, bool completed) {
  if (!jobs_.contains(id)) throw Error(Code::not_found, "job " + std::to_string(id) + " has ended");
  Job& job = jobs_.edit(id);
  if (job.state == JobState::running) {
    release_place(id, job);
  } else {
    leave(id, job);
  }
  const ProjectId project = job.spec->project;
  if (completed) {
    lifetimes_.completed(project, size_class(job.spec->shape), job.attained_s);
    ++projects_.edit(project).completions;
  }
  release_shape(job.shape);
  jobs_.erase(id);
  const ProjectState& state = projects_.at(project);
  if (state.completions >= renew_after_completions ||
      (state.completions > 0 && now_s_ - state.renewed_s >= renew_after_s)) {
    renew_outlook(project);
  }
}

// ---- Indexes

uint16_t Snapshot::intern(const Shape& shape) {
  uint16_t free = 0;
  bool found = false;
  std::optional<uint16_t> known;
  shapes_.for_each([&](uint64_t index, const ShapeEntry& entry) {
    if (*entry.shape == shape) known = static_cast<uint16_t>(index);
    if (!found && index == free) ++free;
    if (index > free) found = true;
  });
  if (known) {
    ++shapes_.edit(*known).jobs;
    return *known;
  }
  if (shapes_.size() >= 65'535) {
    throw Error(Code::exhausted, "more than 65535 different sizes of jobs", "",
                "Round requests for memory and CPUs");
  }
  shapes_.set(free, {std::make_shared<const Shape>(shape), 1});
  return free;
}

void Snapshot::release_shape(uint16_t index) {
  if (--shapes_.edit(index).jobs == 0) shapes_.erase(index);
}

int32_t Snapshot::ordered_priority(const Job& job) const {
  const bool ignored = ordering_ == Ordering::fifo || ordering_ == Ordering::las;
  return ignored ? 0 : job.spec->priority;
}

BucketKey Snapshot::bucket_key(const Job& job) const {
  return (biased(ordered_priority(job)) << 26) | (static_cast<uint64_t>(job.standing) << 24) |
         (uint64_t{job.shape} << 8) | job.bin;
}

float Snapshot::score(ProjectId project, uint16_t shape_index, uint8_t bin) const {
  if (ordering_ != Ordering::standard && ordering_ != Ordering::las) return 1;
  const Shape& wanted = shape(shape_index);
  const Resources total = wanted.total();
  // Jobs without GPUs compete for CPUs only.
  const int64_t milli =
      total.gpu_milli > 0 ? total.gpu_milli : std::max<int64_t>(1, total.cpu_milli);
  const double units = static_cast<double>(milli) / whole_gpu;
  if (ordering_ == Ordering::las) {
    return lifetime_bin_start(bin) * units < las_threshold_gpu_s_ ? 2 : 1;
  }
  return static_cast<float>(outlooks_.at(outlook_key(project, size_class(wanted)))[bin] / units);
}

BucketSlot Snapshot::bucket_for(ProjectState& project, const Job& job) const {
  const BucketKey key = bucket_key(job);
  const FlatIndex::Entry* found = project.slots.lower_bound(key);
  if (found != project.slots.end() && found->key == key) return found->value;
  Bucket bucket;
  bucket.priority = ordered_priority(job);
  bucket.shape = job.shape;
  bucket.bin = job.bin;
  bucket.standing = job.standing;
  bucket.score = score(job.spec->project, job.shape, job.bin);
  const BucketSlot slot = project.add_slot(key);
  project.buckets.set(slot, std::move(bucket));
  return slot;
}

void Snapshot::enter(JobId id, const Job& job) {
  if (job.state == JobState::stopping) return;
  ProjectState& project = projects_.edit(job.spec->project);
  const BucketSlot slot = bucket_for(project, job);
  Bucket& bucket = project.buckets.edit(slot);
  if (job.state == JobState::waiting) {
    if (bucket.waiting.empty()) project.heads.add(head_key(bucket), slot);
    bucket.waiting.set(id, {});
    waiting_.set(id, {});
    ++project.waiting;
    waiting_gpuless_ += job.spec->shape.task.gpu_milli == 0;
    return;
  }
  if (bucket.running.empty() && job.spec->shape.preemptible) {
    project.tails.add(tail_key(bucket), slot);
  }
  bucket.running.set(id, {});
  ++project.running;
  const double crossing_s = lifetime_bin_end(job.bin) - job.attained_s + job.counted_s;
  if (!std::isfinite(crossing_s)) return;
  uint64_t due = (static_cast<uint64_t>(std::ceil(crossing_s * 1000)) << 20) | (id & 0xfffff);
  while (due_.contains(due)) ++due;
  due_.set(due, id);
  jobs_.edit(id).due = due;
}

void Snapshot::leave(JobId id, const Job& job) {
  if (job.state == JobState::stopping) return;
  ProjectState& project = projects_.edit(job.spec->project);
  const BucketKey key = bucket_key(job);
  const BucketSlot slot = project.slot_of(key);
  Bucket& bucket = project.buckets.edit(slot);
  if (job.state == JobState::waiting) {
    bucket.waiting.erase(id);
    waiting_.erase(id);
    --project.waiting;
    waiting_gpuless_ -= job.spec->shape.task.gpu_milli == 0;
    if (bucket.waiting.empty()) project.heads.remove(head_key(bucket));
  } else {
    bucket.running.erase(id);
    --project.running;
    if (bucket.running.empty() && job.spec->shape.preemptible) {
      project.tails.remove(tail_key(bucket));
    }
    const JobId* due = due_.find(job.due);
    if (due && *due == id) due_.erase(job.due);
  }
  if (!bucket.waiting.empty() || !bucket.running.empty()) return;
  project.buckets.erase(slot);
  project.slots.remove(key);
}

// ---- What lifetimes say

void Snapshot::learn_size(ProjectId project, int size) {
  const uint64_t key = outlook_key(project, size);
  if (!outlooks_.contains(key)) outlooks_.set(key, lifetimes_.outlook(project, size));
}

void Snapshot::renew_outlook(ProjectId id) {
  ProjectState& project = projects_.edit(id);
  project.completions = 0;
  project.renewed_s = now_s_;
  if (ordering_ != Ordering::standard) return;
  for (auto entry = outlooks_.lower_bound(outlook_key(id, 0));
       entry && entry->first <= outlook_key(id, 0xff); entry = outlooks_.after(entry->first)) {
    outlooks_.edit(entry->first) = lifetimes_.outlook(id, static_cast<int>(entry->first & 0xff));
  }
  project.heads = {};
  project.tails = {};
  for (auto entry = project.buckets.first(); entry; entry = project.buckets.after(entry->first)) {
    Bucket& bucket = project.buckets.edit(entry->first);
    bucket.score = score(id, bucket.shape, bucket.bin);
    if (!bucket.waiting.empty()) project.heads.add(head_key(bucket), entry->first);
    if (!bucket.running.empty() && shape(bucket.shape).preemptible) {
      project.tails.add(tail_key(bucket), entry->first);
    }
  }
}

}  // namespace dais::jobs
