#include "jobs/decision.h"

#include <cstdio>

#include "jobs/cycle.h"
#include "jobs/forecast.h"
#include "jobs/placement_text.h"

namespace dais::jobs {
namespace {

std::string gpus(int64_t milli) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(milli) / whole_gpu);
  return text;
}

std::string amount(const Shape& shape) {
  const Resources need = shape.total();
  std::string text = gpus(need.gpu_milli) + (need.gpu_milli == whole_gpu ? " GPU" : " GPUs");
  if (shape.mixed()) {
    text += " (";
    for (int i = 0; i < shape.devices(); ++i) text += (i ? " + " : "") + gpus(shape.part(i));
    text += " of distinct devices)";
  }
  if (need.cpu_milli > 0) text += ", " + gpus(need.cpu_milli) + " CPUs";
  if (need.memory_mib > 0) text += ", " + std::to_string(need.memory_mib) + " MiB";
  return text;
}

std::string explain(const Snapshot& now, const Job& job, Refusal refusal) {
  const std::string need = amount(job.spec->shape);
  const Project& project = *now.project(job.spec->project).spec;
  const std::string free = gpus(now.capacity().gpu_free());
  switch (refusal) {
    case Refusal::none: return "starts in this cycle";
    case Refusal::not_tried: return "waits behind older jobs that do not fit yet";
    case Refusal::limit:
      return "needs " + need + ", which would exceed the limit of project '" + project.name +
             "' or of one above it";
    case Refusal::quota:
      return "cannot be preempted, so it needs " + need + " of free quota in project '" +
             project.name + "'";
    case Refusal::room:
      return "needs " + need + " together; " + free +
             " are free and the jobs running now rank higher or are protected";
    case Refusal::reserved:
      return "cannot be preempted, and would delay an older job that waits for room";
    case Refusal::impossible:
      return "needs " + need + " in " + std::to_string(job.spec->shape.tasks) +
             " tasks, which the open hosts could not hold even if they were empty";
  }
  return {};
}

}  // namespace

Decision decide(const Snapshot& snapshot, const Policy& policy) {
  Cycle cycle(snapshot, policy);
  cycle.run();
  return cycle.decision();
}

void apply(Snapshot& snapshot, const Decision& decision) {
  for (JobId id : decision.promote) snapshot.promote(id);
  for (const Preemption& preemption : decision.preempt) snapshot.preempt(preemption.victim);
  for (const Start& start : decision.start) {
    snapshot.start(start.job, start.placement, start.standing);
  }
}

Reason why(const Snapshot& snapshot, const Policy& policy, JobId id) {
  const Job* job = snapshot.jobs().find(id);
  if (!job || job->state != JobState::waiting) {
    throw Error(Code::not_found, "job " + std::to_string(id) + " is not waiting");
  }
  Cycle cycle(snapshot, policy, id);
  cycle.run();
  Reason reason = cycle.watched_reason();
  reason.text = explain(cycle.now(), *job, reason.refusal);
  const bool waits_for_room =
      reason.refusal == Refusal::room || reason.refusal == Refusal::not_tried;
  if (!waits_for_room) return reason;
  reason.expected_wait_s = expected_wait_s(snapshot, id);
  reason.text += reason.expected_wait_s
                     ? "; expected to start in about " + duration_text(*reason.expected_wait_s, 0) +
                           ", if what runs lasts as long as such jobs did so far"
                     : "; more waits ahead of it than runs, so no start can be forecast";
  return reason;
}

}  // namespace dais::jobs
