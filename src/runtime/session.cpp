#include "runtime/session.h"

#include <chrono>

#include "base/threads.h"
#include "runtime/session_state.h"

namespace dais {

Session::Session(std::shared_ptr<const Plan> plan)
    : state_(std::make_unique<State>(std::move(plan))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

const Plan& Session::plan() const {
  return state_->active ? state_->active->plan() : *state_->plan;
}

const std::vector<Datum>& Session::run(std::span<const Datum> inputs,
                                       std::vector<StepTime>* profile) {
  if (profile) profile->clear();
  return run_profiled(inputs, profile);
}

const std::vector<Datum>& Session::run_profiled(std::span<const Datum> inputs,
                                                std::vector<StepTime>* profile) {
  if (team_size() != state_->plan->options().threads)
    set_team_size(state_->plan->options().threads);
  inputs = state_->with_states(inputs);
  state_->active = state_->specialized(inputs);
  if (state_->active) {
    auto& inner = state_->active->state_->states;
    inner = state_->states;
    const auto& results = state_->active->run_profiled(inputs, profile);
    state_->states = inner;
    return results;
  }
  state_->bind(inputs);
  state_->profile = profile;
  const size_t count = state_->steps.size();
  for (size_t at = 0; at < count; ++at) {
    if (profile)
      state_->time_step(at);
    else
      state_->run_step(at);
  }
  state_->collect_outputs();
  state_->commit_states();
  return state_->results;
}

void Session::State::time_step(size_t at) {
  using Clock = std::chrono::steady_clock;
  const size_t first = profile->size();
  const auto before = Clock::now();
  run_step(at);
  double seconds = std::chrono::duration<double>(Clock::now() - before).count();
  for (size_t i = first; i < profile->size(); ++i) seconds -= (*profile)[i].seconds;
  profile->push_back({plan.get(), at, seconds});
}

std::vector<size_t> Session::refused_steps() const {
  if (state_->active) return state_->active->refused_steps();
  std::vector<size_t> out;
  for (size_t at = 0; at < state_->steps.size(); ++at)
    if (state_->plan->steps()[at].kernel && !state_->steps[at].kernel) out.push_back(at);
  return out;
}

}  // namespace dais
