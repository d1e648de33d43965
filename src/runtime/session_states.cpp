#include <algorithm>
#include <cstring>

#include "runtime/session_state.h"

namespace dais {

size_t Session::State::state_index(size_t input) const {
  const auto& all = plan->states();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].pair.input == input) return i;
  throw Error(Code::invalid_argument, "input " + std::to_string(input) + " is no state", "",
              "Name it with its output when the plan is made");
}

void Session::bind_state(size_t input, Tensor memory) {
  const size_t at = state_->state_index(input);
  const Type& type = state_->plan->graph().inputs[input]->type;
  if (memory && memory.dtype() != type.dtype)
    throw Error(Code::invalid_argument,
                "the memory of state '" + state_->plan->graph().inputs[input]->name + "' is " +
                    memory.describe(),
                "", "The model wants " + type.text());
  state_->states[at] = std::move(memory);
}

const Tensor& Session::state(size_t input) const {
  return state_->states[state_->state_index(input)];
}

std::span<const Datum> Session::State::with_states(std::span<const Datum> inputs) {
  const auto& all = plan->states();
  if (all.empty() || inputs.size() != plan->input_slots().size()) return inputs;
  inputs_.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < all.size(); ++i) {
    Datum& given = inputs_[all[i].pair.input];
    Tensor& held = states[i];
    if (given.kind == Datum::Kind::tensor && given.tensor.raw() != held.raw()) {
      const Tensor& from = given.tensor;
      const bool fits = held && held.dtype() == from.dtype() && held.shape() == from.shape();
      if (!fits)
        held = from.clone();
      else if (from.bytes() > 0)
        std::memcpy(held.raw(), from.raw(), from.bytes());
    }
    if (held) given = held;
  }
  return inputs_;
}

/// Copies the new values that were not written in place. Values that lie in the memory of another
/// state are saved first (two states may exchange theirs), as are results that show an old one.
void Session::State::commit_states() {
  const auto& all = plan->states();
  std::vector<size_t> copied;
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i].in_place) copied.push_back(i);
  if (copied.empty()) return;
  for (Datum& result : results) {
    const bool old = std::any_of(copied.begin(), copied.end(), [&](size_t i) {
      return result.kind == Datum::Kind::tensor && result.tensor.raw() == states[i].raw();
    });
    if (old) result = result.tensor.clone();
  }
  for (const size_t i : copied) {
    Datum& result = results[all[i].pair.output];
    Tensor& held = states[i];
    const Tensor& from = result.tensor;
    if (!(held.shape() == from.shape()))
      held = from.clone();
    else if (from.bytes() > 0)
      std::memcpy(held.raw(), from.raw(), from.bytes());
    result = held;
  }
}

}  // namespace dais
