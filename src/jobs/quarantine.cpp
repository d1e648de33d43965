#include "jobs/quarantine.h"

#include <algorithm>

namespace dais::jobs {
namespace {

// Of processes that compute there; 0 when nobody tells.
int64_t bytes_of_processes(const devices::DeviceSample& sample) {
  int64_t sum = 0;
  if (!sample.processes) return 0;
  for (const devices::ProcessSample& process : *sample.processes) {
    sum += process.memory_bytes.value_or(0);
  }
  return sum;
}

}  // namespace

void Quarantine::sample(double at_s, const std::vector<devices::DeviceSample>& samples,
                        const std::set<int>& held) {
  for (const devices::DeviceSample& sample : samples) {
    if (!sample.memory_used_bytes) continue;
    const int64_t used = *sample.memory_used_bytes;
    State& state = states_[sample.index];
    state.least_bytes = state.least_bytes < 0 ? used : std::min(state.least_bytes, used);
    const int64_t left = std::max(used - state.least_bytes, bytes_of_processes(sample));
    if (held.contains(sample.index) || left <= tolerated_bytes) {
      state.since_s = -1;
      closed_.erase(sample.index);
      continue;
    }
    if (state.since_s < 0) state.since_s = at_s;
    if (at_s - state.since_s >= settle_s) closed_[sample.index] = left;
  }
}

}  // namespace dais::jobs
