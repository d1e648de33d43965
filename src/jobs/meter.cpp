#include "jobs/meter.h"

#include <algorithm>

#include "jobs/model.h"

namespace dais::jobs {
namespace {

const devices::DeviceSample* sample_of(const std::vector<devices::DeviceSample>& samples,
                                       int device) {
  for (const devices::DeviceSample& sample : samples) {
    if (sample.index == device) return &sample;
  }
  return nullptr;
}

// Of the processes a job has on a shared device; missing when one of them is.
std::optional<double> shared_utilisation(const Holding& holding,
                                         const devices::DeviceSample& sample) {
  if (!sample.processes) return std::nullopt;
  double sum = 0;
  for (const devices::ProcessSample& process : *sample.processes) {
    if (std::ranges::count(holding.pids, process.pid) == 0) continue;
    if (!process.utilisation) return std::nullopt;
    sum += *process.utilisation;
  }
  return std::min(sum, 1.0);
}

std::optional<int64_t> shared_memory(const Holding& holding, const devices::DeviceSample& sample) {
  if (!sample.processes) return std::nullopt;
  int64_t sum = 0;
  for (const devices::ProcessSample& process : *sample.processes) {
    if (std::ranges::count(holding.pids, process.pid) == 0) continue;
    if (!process.memory_bytes) return std::nullopt;
    sum += *process.memory_bytes;
  }
  return sum;
}

}  // namespace

void Meter::add(Use& use, double at_s, double span_s, const Holding& holding,
                const devices::DeviceSample* sample) {
  const bool whole = holding.gpu_milli >= whole_gpu;
  use.held_s += span_s;
  const auto busy = !sample ? std::nullopt
                    : whole ? sample->utilisation
                            : shared_utilisation(holding, *sample);
  if (busy) {
    use.kernel_s += *busy * span_s;
    use.idle_s += (1 - *busy) * span_s;
  } else {
    use.unknown_s += span_s;
  }
  if (!busy || *busy > 0) {
    use.idle_since_s = -1;
  } else if (use.idle_since_s < 0) {
    use.idle_since_s = at_s;
  }
  if (!sample) return;
  const auto memory = whole ? sample->memory_used_bytes : shared_memory(holding, *sample);
  if (memory) use.memory_bytes = use.memory_bytes.value_or(0) + *memory;
  if (!whole) return;
  if (sample->sent_bytes_s && sample->received_bytes_s) {
    use.moved_bytes =
        use.moved_bytes.value_or(0) + (*sample->sent_bytes_s + *sample->received_bytes_s) * span_s;
  }
  const auto counted = energy_.find(holding.device);
  if (sample->energy_j && counted != energy_.end() && *sample->energy_j >= counted->second) {
    use.energy_j = use.energy_j.value_or(0) + *sample->energy_j - counted->second;
  } else if (!sample->energy_j && sample->power_w) {
    use.energy_j = use.energy_j.value_or(0) + *sample->power_w * span_s;
  }
}

void Meter::sample(double at_s, const std::vector<devices::DeviceSample>& samples,
                   const std::vector<Holding>& holdings, int device_count) {
  const double span_s = last_s_ ? std::max(0.0, at_s - *last_s_) : 0;
  last_s_ = at_s;
  const bool gap = span_s > longest_gap_s;
  for (const Holding& holding : holdings) uses_[holding.job].memory_bytes.reset();
  for (const Holding& holding : holdings) {
    const auto* sample = gap ? nullptr : sample_of(samples, holding.device);
    add(uses_[holding.job], at_s, span_s, holding, sample);
  }
  for (const Holding& holding : holdings) {
    Use& use = uses_[holding.job];
    if (!use.memory_bytes) continue;
    use.memory_peak_bytes = std::max(use.memory_peak_bytes.value_or(0), *use.memory_bytes);
  }
  for (int device = 0; device < device_count; ++device) {
    DeviceUse& use = devices_[device];
    const auto* sample = gap ? nullptr : sample_of(samples, device);
    if (!sample || !sample->utilisation) {
      use.unknown_s += span_s;
    } else {
      const bool held = std::ranges::any_of(
          holdings, [device](const Holding& one) { return one.device == device; });
      use.kernel_s += *sample->utilisation * span_s;
      (held ? use.idle_held_s : use.idle_free_s) += (1 - *sample->utilisation) * span_s;
    }
    if (sample && sample->energy_j) energy_[device] = *sample->energy_j;
  }
}

std::optional<Use> Meter::use(int64_t job) const {
  const auto found = uses_.find(job);
  if (found == uses_.end()) return std::nullopt;
  return found->second;
}

Use Meter::take(int64_t job) {
  const auto found = uses_.find(job);
  if (found == uses_.end()) return {};
  const Use use = found->second;
  uses_.erase(found);
  return use;
}

}  // namespace dais::jobs
