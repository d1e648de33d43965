#include "jobs/activity.h"

namespace dais::jobs {

void Activity::look(int64_t job, double at_s, const Signs& signs) {
  auto [found, added] = states_.try_emplace(job, State{signs, at_s, at_s});
  State& state = found->second;
  const bool computed = !signs.cpu_s || !state.signs.cpu_s ||
                        *signs.cpu_s - *state.signs.cpu_s > least_cpu * (at_s - state.at_s);
  const bool kernels = signs.has_devices && signs.devices_busy.value_or(true);
  const bool printed = signs.output_bytes != state.signs.output_bytes;
  if (added || computed || kernels || printed) {
    if (added || at_s > state.at_s) state.moved_s = at_s;
  }
  state.signs = signs;
  state.at_s = at_s;
}

double Activity::quiet_s(int64_t job, double now_s) const {
  const auto found = states_.find(job);
  return found == states_.end() ? 0 : now_s - found->second.moved_s;
}

}  // namespace dais::jobs
