#include "jobs/victims.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

namespace dais::jobs {
namespace {

// The project and those above it, itself first.
std::vector<ProjectId> chain(const Snapshot& now, ProjectId id) {
  std::vector<ProjectId> out;
  for (; id != no_project; id = now.project(id).spec->parent) out.push_back(id);
  return out;
}

// The ancestors-or-selves of both projects just below their closest common ancestor; for a project
// that is itself above the other one, no_project.
std::pair<ProjectId, ProjectId> branches(const Snapshot& now, ProjectId a, ProjectId b) {
  const auto up_a = chain(now, a), up_b = chain(now, b);
  auto at_a = up_a.rbegin(), at_b = up_b.rbegin();
  while (at_a != up_a.rend() && at_b != up_b.rend() && *at_a == *at_b) ++at_a, ++at_b;
  return {at_a == up_a.rend() ? no_project : *at_a, at_b == up_b.rend() ? no_project : *at_b};
}

bool within_any_quota(const Snapshot& now, ProjectId id, const Resources& need) {
  for (; id != no_project; id = now.project(id).spec->parent) {
    const ProjectState& state = now.project(id);
    if (state.spec->quota != Resources{} && (state.allocated + need).within(state.spec->quota)) {
      return true;
    }
  }
  return false;
}

}  // namespace

// Counts room from a few changed hosts, without touching the indexes of the capacity: most victims
// looked at do not make room, and those that do are booked once.
class Victims::Room {
 public:
  Room(const Snapshot& now, const Shape& shape)
      : capacity_(now.capacity()), shape_(shape), tasks_(now.capacity().room(shape)) {}

  /// Frees a victim's place; true when the gang may fit now and no search said otherwise.
  bool free_up(const Job& job) {
    const Placement& placement = *job.placement;
    const int before = tasks_;
    for (size_t begin = 0; begin < placement.size();) {
      const size_t end = end_of_host(placement, begin);
      const HostId id = placement[begin].host;
      auto [found, added] = changed_.try_emplace(id);
      if (added) found->second = capacity_.host(id);
      tasks_ -= found->second.room(shape_);
      found->second.move(placement, begin, end, job.spec->shape, -1);
      tasks_ += found->second.room(shape_);
      begin = end;
    }
    freed_.push_back(&job);
    return tasks_ > before && tasks_ >= shape_.tasks;
  }

  /// The capacity without the victims so far.
  Capacity& capacity() {
    for (; booked_ < freed_.size(); ++booked_) {
      capacity_.give_back(*freed_[booked_]->placement, freed_[booked_]->spec->shape);
    }
    return capacity_;
  }

 private:
  Capacity capacity_;  // without the first booked_ victims
  const Shape& shape_;
  int tasks_;  // that fit
  std::unordered_map<HostId, HostState> changed_;
  std::vector<const Job*> freed_;
  size_t booked_ = 0;
};

std::optional<Victims::Choice> Victims::choose(const Snapshot& now, const Claim& claim,
                                               bool eventually) {
  eventually_ = eventually;
  prepare(now);
  taken_.clear();
  sides_.assign(tails_.size(), {});
  const bool may_reclaim =
      now.has_quotas() && within_any_quota(now, claim.project, claim.shape.total());
  auto later = [](const Tail& a, const Tail& b) {
    return std::tie(a.priority, a.standing, a.value, b.job) >
           std::tie(b.priority, b.standing, b.value, a.job);
  };
  std::vector<Tail>& heap = heap_;
  heap.clear();
  std::ranges::copy_if(tails_, std::back_inserter(heap), [](const Tail& tail) { return tail.job; });
  std::make_heap(heap.begin(), heap.end(), later);
  none_yields_ = heap.empty();
  if (heap.empty()) return std::nullopt;
  Choice choice;
  Room room(now, claim.shape);
  int spared = 0, looked = 0;
  while (!heap.empty() && looked < policy_.max_victims) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Tail& tail = heap.back();
    if (!tail.exact) {
      aim(now, tail, 0);
      tails_[tail.project] = tail;
      std::push_heap(heap.begin(), heap.end(), later);
      continue;
    }
    const Job& job = now.jobs().at(tail.job);
    const Answer answer = ask(now, claim, tail, job);
    if (answer == Answer::last && !may_reclaim) {
      none_yields_ = looked == 0;
      break;
    }
    if (answer == Answer::spared && ++spared > policy_.max_spared) break;
    if (answer == Answer::yields) {
      take_from(now, tail.project, job.spec->shape.total());
      choice.victims.push_back(tail.job);
      auto placement =
          room.free_up(job) ? room.capacity().find(claim.shape) : std::optional<Placement>();
      if (placement) {
        looked_ += looked + 1;
        choice.placement = std::move(*placement);
        prune(now, room.capacity(), claim, choice);
        return choice;
      }
    }
    const bool over = answer == Answer::done || answer == Answer::last;
    if (!over && next(now, tail)) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
    ++looked;
  }
  looked_ += looked;
  wasted_ += looked;
  return std::nullopt;
}

void Victims::prepare(const Snapshot& now) {
  if (stale_.empty()) {
    now.projects().for_each([&](uint64_t id, const ProjectState&) {
      stale_.resize(id + 1, true);
      tails_.resize(id + 1);
      tails_[id].project = static_cast<ProjectId>(id);
    });
  }
  for (ProjectId id = 0; id < stale_.size(); ++id) {
    if (!stale_[id]) continue;
    stale_[id] = false;
    tails_[id].job = 0;
    if (now.projects().contains(id)) bound(now, tails_[id]);
  }
}

// A bound on a project's least valuable job from the first key of its tails.
void Victims::bound(const Snapshot& now, Tail& tail) const {
  const FlatIndex& tails = now.project(tail.project).tails;
  tail.exact = false;
  if (tails.empty()) return;
  const TailRank least = least_rank(tails.begin()->key);
  tail.job = std::numeric_limits<JobId>::max();
  tail.priority = least.priority;
  tail.standing = least.standing;
  tail.value = least.score * fairness_[tail.project];
}

// Tails of one priority, standing and score form a group, within which the newest job goes first.
bool Victims::aim(const Snapshot& now, Tail& tail, uint64_t from) const {
  const FlatIndex& tails = now.project(tail.project).tails;
  const auto* entry = tails.lower_bound(from);
  if (entry == tails.end()) return false;
  tail.group = entry->key >> 24;
  return newest_before(now, tail, std::numeric_limits<JobId>::max());
}

bool Victims::newest_before(const Snapshot& now, Tail& tail, JobId bound) const {
  const ProjectState& project = now.project(tail.project);
  tail.job = 0;
  tail.exact = true;
  for (const auto* entry = project.tails.lower_bound(tail.group << 24);
       entry != project.tails.end() && entry->key >> 24 == tail.group; ++entry) {
    const Bucket& bucket = project.buckets.at(entry->value);
    const auto job = bucket.running.before(bound);
    if (!job || job->first <= tail.job) continue;
    tail.job = job->first;
    tail.priority = bucket.priority;
    tail.standing = bucket.standing;
    tail.value = bucket.score * fairness_[tail.project];
  }
  return tail.job != 0;
}

bool Victims::next(const Snapshot& now, Tail& tail) const {
  return newest_before(now, tail, tail.job) || aim(now, tail, (tail.group + 1) << 24);
}

Victims::Answer Victims::ask(const Snapshot& now, const Claim& claim, const Tail& tail,
                             const Job& job) {
  bool shielded = false;
  const bool reclaimed = now.has_quotas() && reclaims(now, claim, tail.project, shielded);
  // What this claim takes makes a project shielded, never the other way round.
  if (shielded) return Answer::done;
  if (!reclaimed) {
    if (claim.priority < tail.priority) return Answer::last;
    if (claim.priority == tail.priority) {
      const bool by_value =
          policy_.ordering == Ordering::standard || policy_.ordering == Ordering::las;
      const bool ahead = tail.standing == Standing::backfilled && claim.job < tail.job;
      const bool worth = by_value && tail.standing != Standing::tenured &&
                         claim.value > policy_.preempt_gain * tail.value;
      if (!ahead && !worth) {
        return tail.standing == Standing::backfilled ? Answer::spared : Answer::last;
      }
    }
  }
  return eventually_ || ran_long_enough(now, policy_, job) ? Answer::yields : Answer::spared;
}

bool Victims::reclaims(const Snapshot& now, const Claim& claim, ProjectId from, bool& shielded) {
  Side& side = sides_[from];
  if (!side.known) {
    const auto [asking, holding] = branches(now, claim.project, from);
    side = {true, asking, holding};
  }
  if (side.holding == no_project) return false;
  const ProjectState& holder = now.project(side.holding);
  const auto taken = taken_.find(side.holding);
  const Resources gone = taken == taken_.end() ? Resources() : taken->second;
  if ((holder.allocated - gone).within(holder.spec->quota)) {
    shielded = true;
    return false;
  }
  if (side.asking == no_project) return false;
  const ProjectState& asker = now.project(side.asking);
  return (asker.allocated + claim.shape.total()).within(asker.spec->quota);
}

void Victims::take_from(const Snapshot& now, ProjectId project, const Resources& amount) {
  if (!now.has_quotas()) return;
  for (; project != no_project; project = now.project(project).spec->parent) {
    taken_[project] += amount;
  }
}

bool ran_long_enough(const Snapshot& now, const Policy& policy, const Job& job) {
  const double least_s = job.spec->min_run_s > 0 ? job.spec->min_run_s : policy.min_run_s;
  const double ran_s = now.now_s() - job.start_s;
  return ran_s > 0 && ran_s >= least_s;
}

// The victims were freed from the least valuable up until the gang fitted; those that its place
// does not touch stay, the most valuable first.
void Victims::prune(const Snapshot& now, Capacity& room, const Claim& claim, Choice& choice) const {
  room.take(choice.placement, claim.shape);
  std::vector<JobId> needed;
  for (auto id = choice.victims.rbegin(); id != choice.victims.rend(); ++id) {
    const Job& job = now.jobs().at(*id);
    if (room.fits(*job.placement, job.spec->shape)) {
      room.take(*job.placement, job.spec->shape);
    } else {
      needed.push_back(*id);
    }
  }
  choice.victims = std::move(needed);
}

}  // namespace dais::jobs
