#include "jobs/cycle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "jobs/consolidation.h"

namespace dais::jobs {
namespace {

// Failures of senior jobs after which the rest of them wait for the next cycle.
constexpr int senior_failures = 16;
constexpr int seniors_looked_at = 512;
constexpr int most_starts_watched = 4096;
constexpr size_t growing_looked_at = 16;
// Use below this share of a fair one counts as this much: newcomers are favoured, not boundless.
constexpr double least_use = 0.01;

bool needs_no_less(const Shape& shape, const Shape& other) {
  if (other.tasks > shape.tasks || !other.task.within(shape.task)) return false;
  if (!shape.mixed() && !other.mixed()) return true;
  for (int i = 0; i < other.devices(); ++i) {
    if (other.part(i) > shape.part(i)) return false;
  }
  return true;
}

}  // namespace

// The best waiting job of one project; until it is looked up (`exact`), a bound no later in the
// order of projects, for a decision starts few jobs and need not look into most projects. `from` is
// the part of its heads still to be tried: buckets before it were refused, and a bucket is refused
// as a whole, for its jobs need the same.
struct Cycle::Cursor {
  ProjectId project = 0;
  std::vector<uint64_t> refused;  // heads of the present group
  std::vector<uint16_t> stuck;    // shapes that found neither room nor victims
  uint64_t from = 0;
  uint64_t head = 0;
  bool exact = false;
  bool may_reclaim = false;
  JobId job = 0;
  bool guaranteed = false;
  int32_t priority = 0;
  double value = 0;
};

Cycle::Cycle(const Snapshot& snapshot, const Policy& policy, JobId watched)
    : now_(snapshot), policy_(policy), watched_(watched), victims_(policy, fairness_) {
  DAIS_CHECK(snapshot.ordering() == policy.ordering);
}

void Cycle::run() {
  if (!now_.waiting().empty()) {
    weigh_projects();
    if (now_.has_quotas()) pass(true);
    if (!held_ && policy_.ordering == Ordering::standard) tenure_pass();
    if (!held_) pass(false);
    decision_.more = spent();
  }
  if (decision_.more || watched_ != 0) return;
  stretch_starts();
  if (policy_.ordering != Ordering::fifo) grow_one();
}

// To explain one job is worth more work than to decide.
bool Cycle::spent() const {
  const auto starts = static_cast<int>(decision_.start.size());
  if (watched_ != 0) return starts >= most_starts_watched;
  return starts >= policy_.max_starts || (starts > 0 && victims_.looked() >= policy_.max_looks);
}

// ---- Order

void Cycle::weigh_projects() {
  double weights = 0, used = 0;
  std::vector<double> usage;  // by ProjectId; below 0 for those without jobs
  usage.reserve(now_.projects().size());
  now_.projects().for_each([&](uint64_t id, const ProjectState& state) {
    usage.resize(id + 1, -1);
    if (state.waiting + state.running == 0) return;
    usage[id] = now_.usage_gpu_s(state);
    weights += state.spec->weight;
    used += usage[id];
  });
  fairness_.assign(usage.size(), 1.0);
  if (policy_.ordering != Ordering::standard || used <= 0) return;
  now_.projects().for_each([&](uint64_t id, const ProjectState& state) {
    if (usage[id] < 0) return;
    const double fair = state.spec->weight / weights;
    const double actual = std::max(usage[id] / used, least_use * fair);
    const double factor = std::pow(fair / actual, policy_.fairness_power);
    fairness_[id] = std::clamp(factor, 1 / policy_.fairness_span, policy_.fairness_span);
  });
}

double Cycle::value_of(ProjectId project, float score) const {
  if (policy_.ordering == Ordering::fair) {
    const ProjectState& state = now_.project(project);
    return -dominant_share(state.allocated, now_.capacity().total()) / state.spec->weight;
  }
  return score * fairness_[project];
}

bool Cycle::guaranteed(ProjectId id, const Resources& need) const {
  const ProjectState& state = now_.project(id);
  return state.spec->quota != Resources{} && (state.allocated + need).within(state.spec->quota);
}

// Points the cursor at the best job of its project; false when none is left.
bool Cycle::aim(Cursor& cursor, bool guaranteed_only) const {
  const ProjectState& project = now_.project(cursor.project);
  cursor.job = 0;
  cursor.exact = true;
  uint64_t group = 0;
  for (const auto* entry = project.heads.lower_bound(cursor.from); entry != project.heads.end();
       ++entry) {
    if (cursor.job != 0 && entry->key >> 24 != group) break;
    if (std::find(cursor.refused.begin(), cursor.refused.end(), entry->key) !=
        cursor.refused.end()) {
      continue;
    }
    const auto shape = static_cast<uint16_t>(entry->key >> 8);
    if (!worth_trying(cursor, *entry, shape)) continue;
    const bool in_quota =
        now_.has_quotas() && guaranteed(cursor.project, now_.shape(shape).total());
    if (guaranteed_only && !in_quota) continue;
    const Bucket& bucket = project.buckets.at(entry->value);
    const JobId oldest = bucket.waiting.first()->first;
    if (cursor.job == 0 || oldest < cursor.job) {
      group = entry->key >> 24;
      cursor.head = entry->key;
      cursor.job = oldest;
      cursor.guaranteed = in_quota;
      cursor.priority = bucket.priority;
      cursor.value = value_of(cursor.project, bucket.score);
    }
  }
  if (cursor.job == 0) return false;
  if (cursor.from >> 24 != group) {
    cursor.from = group << 24;
    cursor.refused.clear();
  }
  return true;
}

// False when an attempt is known to fail, from the key alone: most heads are passed over here.
bool Cycle::worth_trying(const Cursor& cursor, const FlatIndex::Entry& head, uint16_t shape) const {
  if (watched_ != 0 || !no_room_for(shape)) return true;
  if (victims_.wasted() >= policy_.max_wasted) return false;
  const auto& stuck = now_.has_quotas() ? cursor.stuck : stuck_;
  if (std::find(stuck.begin(), stuck.end(), shape) != stuck.end()) return false;
  if (policy_.ordering != Ordering::standard || cursor.may_reclaim) return true;
  const HeadRank best = best_rank(head.key);
  const double value = value_of(cursor.project, best.score);
  return std::tie(best.priority, value) > std::tie(hopeless_priority_, hopeless_value_);
}

bool Cycle::no_room_for(uint16_t shape) const {
  if (shape >= no_room_.size()) no_room_.resize(shape + size_t{1}, Known::nothing);
  if (no_room_[shape] == Known::nothing) {
    const Shape& wanted = now_.shape(shape);
    bool fails = wanted.total().gpu_milli > now_.capacity().gpu_free();
    for (const Shape& failed : no_free_room_) fails = fails || needs_no_less(wanted, failed);
    no_room_[shape] = fails ? Known::yes : Known::no;
  }
  return no_room_[shape] == Known::yes;
}

// Some quota above the project still has room for the smallest of jobs.
bool Cycle::quota_left(ProjectId id) const {
  for (; id != no_project; id = now_.project(id).spec->parent) {
    const ProjectState& state = now_.project(id);
    if (state.spec->quota != Resources{} &&
        state.allocated.gpu_milli < state.spec->quota.gpu_milli) {
      return true;
    }
  }
  return false;
}

bool Cycle::precedes(const Cursor& a, const Cursor& b) const {
  if (policy_.ordering == Ordering::fifo) return a.job < b.job;
  return std::tie(b.guaranteed, b.priority, b.value, a.job) <
         std::tie(a.guaranteed, a.priority, a.value, b.job);
}

void Cycle::pass(bool guaranteed_only) {
  if (spent()) return;
  head_blocked_ = false;
  stuck_.clear();
  std::vector<Cursor> heap;
  heap.reserve(now_.projects().size());
  now_.projects().for_each([&](uint64_t id, const ProjectState& state) {
    if (state.waiting == 0) return;
    if (guaranteed_only && !guaranteed(static_cast<ProjectId>(id), {})) return;
    Cursor cursor;
    cursor.project = static_cast<ProjectId>(id);
    cursor.may_reclaim = now_.has_quotas() && quota_left(cursor.project);
    const HeadRank best = best_rank(state.heads.begin()->key);
    cursor.guaranteed = now_.has_quotas() && guaranteed(cursor.project, {});
    cursor.priority = best.priority;
    cursor.value = value_of(cursor.project, best.score);
    heap.push_back(std::move(cursor));
  });
  auto later = [this](const Cursor& a, const Cursor& b) { return precedes(b, a); };
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty() && !spent()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Cursor& cursor = heap.back();
    if (!cursor.exact) {
      if (aim(cursor, guaranteed_only)) {
        std::push_heap(heap.begin(), heap.end(), later);
      } else {
        heap.pop_back();
      }
      continue;
    }
    const Standing standing = head_blocked_ ? Standing::backfilled : Standing::normal;
    const Refusal refusal = attempt(cursor.job, cursor.value, standing);
    if (refusal != Refusal::none) {
      cursor.refused.push_back(cursor.head);
      if (watched_ != 0) note_neighbour(cursor.job, refusal);
      if (policy_.ordering == Ordering::fifo && refusal == Refusal::room) return;
      const bool reserves =
          policy_.ordering == Ordering::priority || policy_.ordering == Ordering::fair;
      if (refusal == Refusal::room && reserves) head_blocked_ = true;
    }
    if (refusal == Refusal::room) {
      (now_.has_quotas() ? cursor.stuck : stuck_).push_back(now_.jobs().at(cursor.job).shape);
    }
    if (aim(cursor, guaranteed_only)) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
  }
}

// The oldest jobs that waited long enough hold their place, or take one, before any comparison of
// values. Oldest first over running and waiting jobs alike. Once a job may use the full share, none
// younger overtakes it, so that small jobs cannot keep a gang out for ever; one larger than the
// share waits until nobody else is tenured.
void Cycle::tenure_pass() {
  const auto machine = static_cast<double>(now_.capacity().total().gpu_milli);
  auto grown = [&](const Job& job) { return now_.waited_s(job) / policy_.tenure_full_wait_s; };
  auto fits = [&](const Job& job) {
    const int64_t held = now_.tenured_gpu_milli();
    const double share = machine * policy_.tenure_share * std::min(1.0, grown(job));
    return held == 0 || static_cast<double>(held + job.spec->shape.total().gpu_milli) <= share;
  };
  auto running = now_.entitled().first();
  auto waiting = now_.waiting().first();
  int failures = 0;
  for (int looked = 0; looked < seniors_looked_at && failures < senior_failures && !spent();
       ++looked) {
    if (waiting && now_.now_s() - now_.jobs().at(waiting->first).submit_s < policy_.tenure_wait_s) {
      waiting.reset();
    }
    if (!running && !waiting) return;
    if (running && (!waiting || running->first < waiting->first)) {
      const JobId id = running->first;
      const Job& job = now_.jobs().at(id);
      if (fits(job)) {
        promote(id);
      } else if (grown(job) >= 1) {
        return;
      }
      running = now_.entitled().after(id);
      continue;
    }
    const JobId id = waiting->first;
    const Job& job = now_.jobs().at(id);
    if (now_.waited_s(job) >= policy_.tenure_wait_s && !fits(job)) {
      if (grown(job) >= 1) return;
    } else if (now_.waited_s(job) >= policy_.tenure_wait_s) {
      const double above_all = std::numeric_limits<double>::infinity();
      failures += attempt(id, above_all, Standing::tenured) != Refusal::none;
      // Victims may have been among the entitled.
      running = now_.entitled().lower_bound(id);
    }
    waiting = now_.waiting().after(id);
  }
}

// ---- One job

Refusal Cycle::attempt(JobId id, double value, Standing standing) {
  const Job& job = now_.jobs().at(id);
  Refusal refusal = admit(job, job.spec->shape.total());
  if (refusal == Refusal::none) {
    const Claim claim{id, job.spec->project,
                      policy_.ordering == Ordering::las ? 0 : job.spec->priority, value,
                      job.spec->shape};
    if (!place_free(id, standing) && !place_by_preempting(claim, standing) &&
        !place_by_moving(claim, standing)) {
      refusal = Refusal::room;
    }
  }
  if (id == watched_) note(id, refusal);
  return refusal;
}

Refusal Cycle::admit(const Job& job, const Resources& need) const {
  for (ProjectId id = job.spec->project; id != no_project; id = now_.project(id).spec->parent) {
    const ProjectState& state = now_.project(id);
    if (!(state.allocated + need).within(state.spec->limit)) return Refusal::limit;
  }
  if (job.spec->shape.preemptible) return Refusal::none;
  // What cannot be reclaimed must not be lent.
  if (now_.has_quotas()) {
    return guaranteed(job.spec->project, need) ? Refusal::none : Refusal::quota;
  }
  return head_blocked_ ? Refusal::reserved : Refusal::none;
}

bool Cycle::place_free(JobId id, Standing standing) {
  const Shape& shape = now_.jobs().at(id).spec->shape;
  for (const Shape& failed : no_free_room_) {
    if (needs_no_less(shape, failed)) return false;
  }
  auto placement = now_.capacity().find(shape);
  if (!placement) {
    no_free_room_.push_back(shape);
    no_room_.clear();
    return false;
  }
  start(id, std::move(*placement), standing);
  return true;
}

bool Cycle::known_to_fail(const Claim& claim) const {
  const bool by_value = policy_.ordering == Ordering::standard;
  for (const Claim& failed : no_victims_) {
    const bool same_rights = !now_.has_quotas() || failed.project == claim.project;
    if (same_rights && failed.priority >= claim.priority && failed.value >= claim.value &&
        (by_value || failed.job <= claim.job) && needs_no_less(claim.shape, failed.shape)) {
      return true;
    }
  }
  return false;
}

bool Cycle::place_by_preempting(const Claim& claim, Standing standing) {
  if (policy_.ordering == Ordering::fifo || known_to_fail(claim)) return false;
  if (victims_.wasted() >= policy_.max_wasted) return false;
  auto choice = victims_.choose(now_, claim);
  if (!choice) {
    no_victims_.push_back(claim);
    if (victims_.none_yields()) {
      hopeless_priority_ = claim.priority;
      hopeless_value_ = claim.value;
    }
    if (guaranteed(claim.project, claim.shape.total()) && !held_) {
      held_ = victims_.choose(now_, claim, true).has_value();
    }
    return false;
  }
  for (JobId victim : choice->victims) displace(victim, claim.job);
  // A victim may leave more than the claim needs.
  no_free_room_.clear();
  no_room_.clear();
  start(claim.job, std::move(choice->placement), standing);
  return true;
}

bool Cycle::place_by_moving(const Claim& claim, Standing standing) {
  if (policy_.ordering == Ordering::fifo || moves_sought_) return false;
  if (claim.shape.total().gpu_milli > now_.capacity().gpu_free()) return false;
  moves_sought_ = true;
  auto moves = consolidate(now_, policy_, claim);
  if (!moves) return false;
  for (JobId moved : moves->moved) displace(moved, claim.job);
  no_free_room_.clear();
  no_room_.clear();
  start(claim.job, std::move(moves->placement), standing);
  return true;
}

void Cycle::displace(JobId victim, JobId beneficiary) {
  victims_.invalidate(now_.jobs().at(victim).spec->project);
  now_.preempt(victim);
  decision_.preempt.push_back({victim, beneficiary});
}

// ---- Elastic jobs

// What a waiting job would take of what is free and allowed: an elastic one up to its most.
Shape Cycle::stretched(const Job& job) const {
  Shape shape = job.spec->shape;
  if (job.spec->most_tasks <= shape.tasks) return shape;
  const int fewest = shape.tasks;
  shape.tasks = job.spec->most_tasks;
  shape.tasks = std::max(fewest, now_.capacity().room(shape));
  while (shape.tasks > fewest && admit(job, shape.total()) != Refusal::none) --shape.tasks;
  return shape;
}

// Once everybody had his turn, the elastic ones of those that start take what is left.
void Cycle::stretch_starts() {
  for (Start& start : decision_.start) {
    if (now_.jobs().at(start.job).spec->most_tasks == 0) continue;
    now_.preempt(start.job);
    now_.stopped(start.job);
    auto placement = now_.capacity().find(stretched(now_.jobs().at(start.job)));
    if (placement) start.placement = std::move(*placement);
    now_.start(start.job, start.placement, start.standing);
  }
  // Last: what they took besides was lent after all others were given theirs.
  std::stable_partition(decision_.start.begin(), decision_.start.end(), [this](const Start& start) {
    const JobSpec& spec = *now_.jobs().at(start.job).spec;
    return spec.most_tasks == 0 || spec.shape.tasks == spec.fewest_tasks;
  });
}

// With nobody waiting or stopping, one elastic job that could have a quarter more starts again.
void Cycle::grow_one() {
  if (now_.growing().empty() || !now_.waiting().empty()) return;
  int64_t running = 0;
  now_.projects().for_each([&](uint64_t, const ProjectState& state) { running += state.running; });
  if (running != static_cast<int64_t>(now_.jobs().size())) return;
  std::vector<JobId> candidates;
  for (auto entry = now_.growing().first(); entry && candidates.size() < growing_looked_at;
       entry = now_.growing().after(entry->first)) {
    candidates.push_back(entry->first);
  }
  for (const JobId id : candidates) {
    const Job& job = now_.jobs().at(id);
    const double least_s = job.spec->min_run_s > 0 ? job.spec->min_run_s : policy_.grow_after_s;
    if (!job.spec->shape.preemptible || now_.now_s() - job.start_s < least_s) continue;
    const int tasks = job.spec->shape.tasks;
    const Standing standing = job.standing;
    Placement placement = *job.placement;
    now_.preempt(id);
    now_.stopped(id);
    if (stretched(now_.jobs().at(id)).tasks >= tasks + std::max(1, tasks / 4)) {
      decision_.preempt.push_back({id, id});
      return;
    }
    now_.start(id, std::move(placement), standing);
  }
}

void Cycle::promote(JobId id) {
  now_.promote(id);
  auto started = std::find_if(decision_.start.begin(), decision_.start.end(),
                              [id](const Start& start) { return start.job == id; });
  if (started != decision_.start.end()) {
    started->standing = Standing::tenured;
  } else {
    decision_.promote.push_back(id);
  }
  victims_.invalidate(now_.jobs().at(id).spec->project);
}

void Cycle::start(JobId id, Placement placement, Standing standing) {
  decision_.start.push_back({id, placement, standing});
  now_.start(id, std::move(placement), standing);
  no_room_.clear();
  victims_.invalidate(now_.jobs().at(id).spec->project);
}

// A bucket is refused as a whole: what its oldest job met, the watched one would meet.
void Cycle::note_neighbour(JobId tried, Refusal refusal) {
  const Job& job = now_.jobs().at(watched_);
  const Job& other = now_.jobs().at(tried);
  if (job.state == JobState::waiting && job.spec->project == other.spec->project &&
      job.shape == other.shape && job.spec->priority == other.spec->priority &&
      job.bin == other.bin) {
    note(watched_, refusal);
  }
}

void Cycle::note(JobId id, Refusal refusal) {
  const Job& job = now_.jobs().at(id);
  reason_.refusal = refusal;
  if (refusal == Refusal::room && !now_.capacity().possible(job.spec->shape)) {
    reason_.refusal = Refusal::impossible;
  }
}

}  // namespace dais::jobs
