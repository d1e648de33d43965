#include "runtime/session.h"

#include <algorithm>
#include <optional>

#include "base/host_activity.h"
#include "base/span.h"
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
  std::optional<HostStretch> running;
  if (!state_->plan->options().backend) running.emplace(HostActivity::run);
  return run_profiled(inputs, profile);
}

void Session::prefetch(std::span<const Datum> inputs) {
  const auto& backend = state_->plan->options().backend;
  if (!backend) return;
  if (!state_->ahead) state_->ahead = std::make_shared<InputsAhead>(*backend);
  state_->ahead->start(inputs);
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
    state_->active->state_->ahead = state_->ahead;
    const auto& results = state_->active->run_profiled(inputs, profile);
    state_->states = inner;
    return results;
  }
  state_->bind(inputs);
  state_->profile = profile;
  if (state_->queue) state_->notice_moves();
  const size_t count = state_->steps.size();
  for (size_t at = 0; at < count;) {
    if (profile)
      state_->time_step(at++);
    else
      at = state_->run_steps(at);
  }
  if (state_->queue) state_->finish_device();
  state_->collect_outputs();
  state_->commit_states();
  return state_->results;
}

void Session::State::time_step(size_t at) {
  const size_t first = profile->size();
  const double start = steady_seconds();
  run_step(at);
  if (queue) wait();
  const double elapsed = steady_seconds() - start;
  double inside = 0;
  for (size_t i = first; i < profile->size(); ++i) inside += (*profile)[i].seconds;
  StepTime time{plan.get(), at, elapsed - inside, start, elapsed};
  describe(plan->steps()[at], time);
  profile->push_back(std::move(time));
}

/// Types of the inputs, and how many bytes went in and out.
void Session::State::describe(const Step& step, StepTime& time) const {
  const auto bytes = [&](int slot) {
    const Datum& datum = data[static_cast<size_t>(slot)];
    return datum.kind == Datum::Kind::tensor ? static_cast<double>(datum.tensor.bytes()) : 0;
  };
  for (size_t i = 0; i < step.in.size(); ++i) {
    Type& type = time.in.emplace_back();
    const int slot = step.in[i];
    if (slot < 0) continue;
    const Datum& datum = data[static_cast<size_t>(slot)];
    if (datum.kind == Datum::Kind::tensor && datum.tensor) type = Type::of(datum.tensor);
    const auto here = step.in.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(step.in.begin(), here, slot) == here) time.bytes += bytes(slot);
  }
  for (size_t i = 0; i < step.out.size(); ++i) {
    time.bytes += bytes(step.out[i]);
    const int over = i < step.overwrites.size() ? step.overwrites[i] : -1;
    const bool grows = over >= 0 && static_cast<size_t>(over) < step.growing.size() &&
                       step.growing[static_cast<size_t>(over)] >= 0;
    if (grows) time.bytes -= bytes(step.in[static_cast<size_t>(over)]);
  }
}

std::vector<std::pair<size_t, std::string>> Session::notes() const {
  if (state_->active) return state_->active->notes();
  std::vector<std::pair<size_t, std::string>> out;
  for (const size_t at : refused_steps())
    out.emplace_back(at, std::string(state_->plan->steps()[at].row->name) +
                             " refuses these sizes: plain loops on the CPU run");
  for (size_t at = 0; at < state_->steps.size(); ++at)
    if (const BoundKernel* kernel = state_->steps[at].kernel)
      if (std::string note = kernel->note(); !note.empty()) out.emplace_back(at, std::move(note));
  return out;
}

std::vector<size_t> Session::refused_steps() const {
  if (state_->active) return state_->active->refused_steps();
  std::vector<size_t> out;
  for (size_t at = 0; at < state_->steps.size(); ++at)
    if (const Step& step = state_->plan->steps()[at];
        step.bound_early && step.kernel && !state_->steps[at].kernel)
      out.push_back(at);
  return out;
}

}  // namespace dais
