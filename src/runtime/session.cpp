#include "runtime/session.h"

#include <chrono>

#include "base/threads.h"
#include "runtime/session_state.h"

namespace dais {

Session::Session(std::shared_ptr<const Plan> plan)
    : state_(std::make_unique<State>(std::move(plan))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

const Plan& Session::plan() const { return *state_->plan; }

const std::vector<Datum>& Session::run(std::span<const Datum> inputs,
                                       std::vector<StepTime>* profile) {
  using Clock = std::chrono::steady_clock;
  if (team_size() != state_->plan->options().threads)
    set_team_size(state_->plan->options().threads);
  state_->bind(inputs);
  const size_t count = state_->steps.size();
  if (!profile) {
    for (size_t at = 0; at < count; ++at) state_->run_step(at);
  } else {
    profile->clear();
    auto before = Clock::now();
    for (size_t at = 0; at < count; ++at) {
      state_->run_step(at);
      const auto after = Clock::now();
      profile->push_back({at, std::chrono::duration<double>(after - before).count()});
      before = after;
    }
  }
  state_->collect_outputs();
  return state_->results;
}

std::vector<size_t> Session::refused_steps() const {
  std::vector<size_t> out;
  for (size_t at = 0; at < state_->steps.size(); ++at)
    if (state_->plan->steps()[at].kernel && !state_->steps[at].kernel) out.push_back(at);
  return out;
}

}  // namespace dais
