#include "jobs/forecast.h"

#include <algorithm>
#include <vector>

namespace dais::jobs {
namespace {

constexpr double longest_s = 1e9;
// Older jobs of one bucket that are counted one by one; the rest count as ahead too.
constexpr int most_counted = 10'000;

struct End {
  double in_s;
  const Job* job;
};

std::vector<End> likely_ends(const Snapshot& snapshot) {
  std::vector<End> ends;
  snapshot.projects().for_each([&](uint64_t, const ProjectState& project) {
    project.buckets.for_each([&](uint64_t, const Bucket& bucket) {
      bucket.running.for_each([&](uint64_t id, const auto&) {
        const Job& job = snapshot.jobs().at(id);
        ends.push_back({likely_remaining_s(snapshot, job), &job});
      });
    });
  });
  std::ranges::stable_sort(ends, {}, &End::in_s);
  return ends;
}

int64_t older_than(const Bucket& bucket, JobId id) {
  int64_t count = 0;
  for (auto entry = bucket.waiting.first(); entry && entry->first < id;
       entry = bucket.waiting.after(entry->first)) {
    if (++count == most_counted) return static_cast<int64_t>(bucket.waiting.size());
  }
  return count;
}

Resources wanted_ahead(const Snapshot& snapshot, JobId id, int32_t priority) {
  Resources ahead;
  snapshot.projects().for_each([&](uint64_t, const ProjectState& project) {
    project.buckets.for_each([&](uint64_t, const Bucket& bucket) {
      if (bucket.priority < priority) return;
      const int64_t jobs = bucket.priority > priority ? static_cast<int64_t>(bucket.waiting.size())
                                                      : older_than(bucket, id);
      ahead += snapshot.shape(bucket.shape).total() * jobs;
    });
  });
  return ahead;
}

}  // namespace

double likely_remaining_s(const Snapshot& snapshot, const Job& job) {
  const double attained_s = snapshot.attained_s(job);
  const ProjectId project = job.spec->project;
  const int size = size_class(job.spec->shape);
  double low = 0, high = 1;
  const auto half_ended = [&](double in_s) {
    return snapshot.lifetimes().completion_chance(project, size, attained_s, in_s) >= 0.5;
  };
  while (high < longest_s && !half_ended(high)) high *= 2;
  for (int step = 0; step < 30; ++step) {
    const double middle = (low + high) / 2;
    (half_ended(middle) ? high : low) = middle;
  }
  if (job.spec->time_limit_s <= 0) return high;
  return std::min(high, std::max(0.0, job.spec->time_limit_s - attained_s));
}

std::optional<double> expected_wait_s(const Snapshot& snapshot, JobId id) {
  const Job& job = snapshot.jobs().at(id);
  const Shape& shape = job.spec->shape;
  const Resources ahead = wanted_ahead(snapshot, id, job.spec->priority);
  Capacity room = snapshot.capacity();
  Resources left;  // by those that ended so far: what is ahead takes it first
  for (const End& end : likely_ends(snapshot)) {
    room.give_back(*end.job->placement, end.job->spec->shape);
    left += end.job->spec->shape.total();
    if (!(ahead.within(left) && room.find(shape))) continue;
    return end.in_s;
  }
  return std::nullopt;
}

}  // namespace dais::jobs
