// The part of the controller that measures: nothing here may disturb the jobs.
#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "jobs/controller.h"

namespace dais::jobs {
namespace {

constexpr double disk_alert_share = 0.05;
constexpr double activity_every_s = 10;

// The placement of one task each: a device that several tasks share counts once, with all of it.
std::vector<Holding> holdings_of(int64_t job, const Placement& placement,
                                 const std::vector<int>& pids) {
  std::map<int, int32_t> by_device;
  for (const Slot& slot : placement) {
    if (slot.device >= 0) by_device[slot.device] += slot.gpu_milli;
  }
  std::vector<Holding> out;
  for (const auto& [device, milli] : by_device) out.push_back({job, device, milli, pids});
  return out;
}

}  // namespace

void Controller::mind_devices() {
  const devices::Watch::Reading reading = watch_.latest();
  if (reading.number == reading_) return;
  reading_ = reading.number;
  std::map<int, int64_t> memory_mib;
  for (const devices::DeviceSample& sample : reading.devices) {
    if (sample.memory_total_bytes) memory_mib[sample.index] = *sample.memory_total_bytes >> 20;
  }
  executor_->know_memory(memory_mib);
  std::vector<Holding> holdings;
  for (const int64_t id : active_) {
    const Entry& entry = open_.at(id);
    if (entry.row.phase == Phase::starting) continue;
    const bool shares = std::ranges::any_of(
        entry.placement, [](const Slot& slot) { return slot.gpu_milli < whole_gpu; });
    const auto one = holdings_of(
        id, entry.placement, shares ? executor_->members(attempt_of(entry)) : std::vector<int>());
    holdings.insert(holdings.end(), one.begin(), one.end());
  }
  meter_.sample(now_s_, reading.devices, holdings, options_.machine.devices);
  keep_history(reading.devices);
  mind_quarantine(reading.devices);
}

void Controller::mind_activity() {
  if (now_s_ < activity_due_s_) return;
  activity_due_s_ = now_s_ + activity_every_s;
  for (const int64_t id : active_) {
    const Entry& entry = open_.at(id);
    if (entry.row.phase != Phase::running) continue;
    Signs signs;
    signs.output_bytes = entry.printed;
    signs.cpu_s = executor_->groups(attempt_of(entry)).cpu_s;
    signs.has_devices = entry.request.gpu_milli > 0;
    const auto use = meter_.use(id);
    if (use)
      signs.devices_busy = use->idle_since_s < 0 || now_s_ - use->idle_since_s < activity_every_s;
    activity_.look(id, now_s_, signs);
  }
}

std::optional<Controller::Spent> Controller::spent(int64_t job) const {
  const auto found = open_.find(job);
  if (found == open_.end() || !active_.contains(job)) return std::nullopt;
  const Entry& entry = found->second;
  return Spent{meter_.use(job), executor_->groups(attempt_of(entry)),
               executor_->disk(attempt_of(entry), entry.request.tasks)};
}

void Controller::keep_history(const std::vector<devices::DeviceSample>& samples) {
  const auto at_s = static_cast<int64_t>(now_s_) / fine_s * fine_s;
  if (at_s == history_s_ || store_.degraded()) return;
  history_s_ = at_s;
  std::vector<MetricRow> rows;
  for (const devices::DeviceSample& sample : samples) {
    const auto add = [&](const char* name, std::optional<double> value) {
      if (value) rows.push_back({fine_s, at_s, sample.index, name, *value});
    };
    add("utilisation", sample.utilisation);
    add("memory_used_bytes", sample.memory_used_bytes);
    add("sent_bytes_s", sample.sent_bytes_s);
    add("received_bytes_s", sample.received_bytes_s);
    add("power_w", sample.power_w);
  }
  if (rows.empty()) return;
  try {
    store_.add_metrics(rows, at_s);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
  }
}

void Controller::book_usage(const Entry& entry, const AttemptOutcome& outcome,
                            const Transition& end) {
  const double gpus =
      static_cast<double>(entry.request.gpu_milli * entry.request.tasks) / whole_gpu;
  Use use = meter_.take(entry.row.id);
  // Samples tell what was done; how long it held them is known better from its start and end.
  const double held_s = end.ran_s * gpus;
  const double told_s = use.kernel_s + use.idle_s;
  const double scale = told_s > held_s ? held_s / told_s : 1;
  UsageRow row;
  row.job = entry.row.id;
  row.attempt = entry.row.attempts;
  row.project = entry.request.project;
  row.user = entry.request.user;
  row.end_s = now_s_;
  row.failed = end.failure || end.to == Phase::failed;
  row.held_s = held_s;
  row.kernel_s = use.kernel_s * scale;
  row.idle_s = use.idle_s * scale;
  row.unknown_s = std::max(0.0, held_s - row.kernel_s - row.idle_s);
  row.moved_bytes = use.moved_bytes;
  row.energy_j = use.energy_j;
  row.gpu_memory_peak_bytes = use.memory_peak_bytes;
  row.cpu_s = outcome.groups.cpu_s;
  row.memory_peak_bytes = outcome.groups.memory_peak_bytes;
  if (outcome.disk) {
    row.read_bytes = static_cast<double>(outcome.disk->read_bytes);
    row.written_bytes = static_cast<double>(outcome.disk->written_bytes);
  }
  try {
    store_.add_usage(row);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
  }
}

std::vector<std::string> Controller::alerts() const {
  std::vector<std::string> out;
  for (const int64_t id : active_) {
    const auto use = meter_.use(id);
    if (!use || use->idle_since_s < 0) continue;
    const double idle_s = now_s_ - use->idle_since_s;
    if (idle_s < options_.idle_alert_s) continue;
    out.push_back("job " + std::to_string(id) + " has held its GPUs for " +
                  std::to_string(std::llround(idle_s / 60)) + " minutes without a kernel");
  }
  for (const int64_t id : active_) {
    const double quiet_s = activity_.quiet_s(id, now_s_);
    if (quiet_s < options_.stuck_alert_s) continue;
    out.push_back("job " + std::to_string(id) + " may be stuck: for " +
                  std::to_string(std::llround(quiet_s / 60)) +
                  " minutes it printed nothing and used neither CPU nor GPU");
  }
  for (const auto& [device, bytes] : quarantine_.closed()) {
    out.push_back("GPU " + std::to_string(device) + " is in quarantine: no job holds it, yet " +
                  std::to_string(bytes >> 20) + " MiB of its memory stay in use");
  }
  struct statvfs disk {};
  if (statvfs(options_.folder.c_str(), &disk) == 0 && disk.f_blocks > 0) {
    const double share = static_cast<double>(disk.f_bavail) / static_cast<double>(disk.f_blocks);
    if (share < disk_alert_share) {
      out.push_back("the disk of the data folder has " + std::to_string(std::llround(share * 100)) +
                    " % left");
    }
  }
  if (store_.degraded()) out.emplace_back("the disk is full: no job is accepted");
  return out;
}

}  // namespace dais::jobs
