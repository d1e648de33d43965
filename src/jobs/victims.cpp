#include "jobs/victims.h"

#include <algorithm>
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

std::optional<Victims::Choice> Victims::choose(const Snapshot& now, const Claim& claim,
                                               bool eventually) {
  eventually_ = eventually;
  if (!prepared_) prepare(now);
  taken_.clear();
  none_yields_ = tails_.empty();
  const bool may_reclaim =
      now.has_quotas() && within_any_quota(now, claim.project, claim.shape.total());
  auto later = [](const Tail& a, const Tail& b) {
    return std::tie(a.priority, a.standing, a.value, b.job) >
           std::tie(b.priority, b.standing, b.value, a.job);
  };
  std::vector<Tail> heap = tails_;
  std::make_heap(heap.begin(), heap.end(), later);
  Choice choice;
  Capacity room = now.capacity();
  int spared = 0, looked = 0;
  for (; !heap.empty() && looked < policy_.max_victims; ++looked) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Tail& tail = heap.back();
    const Answer answer = ask(now, claim, tail);
    if (answer == Answer::last && !may_reclaim) {
      none_yields_ = looked == 0;
      break;
    }
    if (answer == Answer::spared && ++spared > policy_.max_spared) break;
    if (answer == Answer::yields) {
      const Job& job = now.jobs().at(tail.job);
      const bool gained = free_up(room, job, claim);
      taken_.emplace_back(tail.project, job.spec->shape.total());
      choice.victims.push_back(tail.job);
      auto placement = gained ? room.find(claim.shape) : std::nullopt;
      if (placement) {
        choice.placement = std::move(*placement);
        prune(now, room, claim, choice);
        return choice;
      }
    }
    if (next(now, tail)) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
  }
  wasted_ += looked;
  return std::nullopt;
}

// Frees a victim's place in `room`; false when no host can take more tasks of the claim than
// before, so that a search for its place would fail as the last one did.
bool Victims::free_up(Capacity& room, const Job& job, const Claim& claim) {
  const bool whole = claim.shape.task.gpu_milli >= whole_gpu;
  std::vector<std::pair<HostId, int>> before;
  for (const Slot& slot : *job.placement) {
    if (whole && (before.empty() || before.back().first != slot.host)) {
      before.emplace_back(slot.host, room.room_on(slot.host, claim.shape));
    }
  }
  room.give_back(*job.placement, job.spec->shape);
  return !whole || std::any_of(before.begin(), before.end(), [&](const auto& host) {
    return room.room_on(host.first, claim.shape) > host.second;
  });
}

void Victims::prepare(const Snapshot& now) {
  tails_.clear();
  now.projects().for_each([&](uint64_t id, const ProjectState&) {
    Tail tail;
    tail.project = static_cast<ProjectId>(id);
    if (aim(now, tail, 0)) tails_.push_back(tail);
  });
  prepared_ = true;
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

Victims::Answer Victims::ask(const Snapshot& now, const Claim& claim, const Tail& tail) const {
  bool shielded = false;
  const bool reclaimed = now.has_quotas() && reclaims(now, claim, tail.project, shielded);
  if (shielded) return Answer::spared;
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
  return ran_long_enough(now, now.jobs().at(tail.job)) ? Answer::yields : Answer::spared;
}

bool Victims::reclaims(const Snapshot& now, const Claim& claim, ProjectId from,
                       bool& shielded) const {
  const auto [asking, holding] = branches(now, claim.project, from);
  if (holding == no_project) return false;
  const ProjectState& holder = now.project(holding);
  if ((holder.allocated - taken_from(holding, now)).within(holder.spec->quota)) {
    shielded = true;
    return false;
  }
  if (asking == no_project) return false;
  const ProjectState& asker = now.project(asking);
  return (asker.allocated + claim.shape.total()).within(asker.spec->quota);
}

Resources Victims::taken_from(ProjectId branch, const Snapshot& now) const {
  Resources sum;
  for (const auto& [project, amount] : taken_) {
    const auto up = chain(now, project);
    if (std::find(up.begin(), up.end(), branch) != up.end()) sum += amount;
  }
  return sum;
}

bool Victims::ran_long_enough(const Snapshot& now, const Job& job) const {
  if (eventually_) return true;
  const double least_s = job.spec->min_run_s > 0 ? job.spec->min_run_s : policy_.min_run_s;
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
