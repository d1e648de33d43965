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
  if (memory && state_->plan->states()[at].growing_axis >= 0)
    state_->start_growing(at, memory);
  else if (state_->resident(at))
    state_->bind_resident(at, std::move(memory));
  else
    state_->states[at] = std::move(memory);
  state_->keep_memory(at);
}

void Session::reserve_state(size_t input, int64_t entries) {
  state_->growths[state_->state_index(input)].reserve = entries;
}

Tensor Session::state(size_t input) const {
  const size_t at = state_->state_index(input);
  if (state_->resident(at)) return state_->fetch_resident(at);
  return state_->plan->states()[at].growing_axis < 0 ? state_->states[at] : state_->dense_state(at);
}

std::span<const Datum> Session::State::with_states(std::span<const Datum> inputs) {
  const auto& all = plan->states();
  if (all.empty() || inputs.size() != plan->input_slots().size()) return inputs;
  inputs_.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < all.size(); ++i) {
    Datum& given = inputs_[all[i].pair.input];
    Tensor& held = states[i];
    if (given.kind == Datum::Kind::tensor && (!held || given.tensor.raw() != held.raw())) {
      const Tensor& from = given.tensor;
      const bool fits = held && held.dtype() == from.dtype() && held.shape() == from.shape();
      if (all[i].growing_axis >= 0)
        start_growing(i, from);
      else if (resident(i))
        fill_resident(i, from);
      else if (!fits)
        held = from.clone();
      else if (from.bytes() > 0)
        std::memcpy(held.raw(), from.raw(), from.bytes());
    }
    if (held) given = held;
  }
  return inputs_;
}

/// Copies a value between layouts with room for different numbers of entries.
void Session::State::copy_growing(size_t at, const Shape& shape, const void* from,
                                  int64_t from_room, void* to, int64_t to_room) const {
  const auto axis = static_cast<size_t>(plan->states()[at].growing_axis);
  const size_t entry = static_cast<size_t>(shape.elements(axis + 1, shape.rank())) *
                       dtype_size(plan->graph().inputs[plan->states()[at].pair.input]->type.dtype);
  const size_t bytes = static_cast<size_t>(shape[axis]) * entry;
  if (bytes == 0) return;
  const int64_t outer = shape.elements(0, axis);
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(static_cast<std::byte*>(to) + static_cast<size_t>(i * to_room) * entry,
                static_cast<const std::byte*>(from) + static_cast<size_t>(i * from_room) * entry,
                bytes);
}

/// The state becomes a copy of a dense value.
void Session::State::start_growing(size_t at, const Tensor& from) {
  const auto axis = static_cast<size_t>(plan->states()[at].growing_axis);
  if (from.dtype() != plan->graph().inputs[plan->states()[at].pair.input]->type.dtype ||
      from.rank() <= axis) {
    states[at] = from;  // binding names what is wrong with it
    growths[at] = {{}, 0, growths[at].reserve};
    return;
  }
  states[at] = Tensor();
  Shape shape = from.shape();
  shape[axis] = 0;
  states[at] = Tensor::view(from.dtype(), shape, nullptr);
  const bool fits = growths[at].buffer && growths[at].room >= from.shape()[axis] &&
                    growths[at].buffer.shape().elements(axis + 1, shape.rank()) ==
                        shape.elements(axis + 1, shape.rank()) &&
                    growths[at].buffer.shape().elements(0, axis) == shape.elements(0, axis);
  if (!fits) make_room(at, from.shape()[axis]);
  copy_growing(at, from.shape(), from.raw(), from.shape()[axis], growths[at].buffer.raw(),
               growths[at].room);
  states[at] = Tensor::view(from.dtype(), from.shape(), growths[at].buffer.raw());
}

/// A larger buffer, half as large again as needed, so that this happens now and then only.
void Session::State::make_room(size_t at, int64_t entries) {
  const auto axis = static_cast<size_t>(plan->states()[at].growing_axis);
  Growth& growth = growths[at];
  const Tensor& held = states[at];
  Shape shape = held.shape();
  shape[axis] = std::max(growth.reserve, entries + std::max<int64_t>(entries / 2, 16));
  Tensor buffer(held.dtype(), shape);
  copy_growing(at, held.shape(), held.raw(), growth.room, buffer.raw(), shape[axis]);
  growth.buffer = std::move(buffer);
  growth.room = shape[axis];
  states[at] = Tensor::view(held.dtype(), held.shape(), growth.buffer.raw());
}

/// Sees that the buffers have room for what this run adds, before kernels are bound to them.
void Session::State::make_rooms() {
  const auto& all = plan->states();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].growing_axis < 0) continue;
    const auto in = static_cast<size_t>(plan->input_slots()[all[i].pair.input]);
    const auto out = static_cast<size_t>(plan->output_slots()[all[i].pair.output]);
    const int64_t entries = shapes[out][static_cast<size_t>(all[i].growing_axis)];
    if (entries > growths[i].room) make_room(i, entries);
    data[in] = states[i];
    pointers[in] = states[i].raw();
    if (growths[i].room == bound_rooms_[i]) continue;
    mark_changed(in);
    bound_rooms_[i] = growths[i].room;
  }
}

Tensor Session::State::dense_state(size_t at) const {
  const Tensor& held = states[at];
  if (!held) return {};
  Tensor out(held.dtype(), held.shape());
  copy_growing(at, held.shape(), held.raw(), growths[at].room, out.raw(),
               held.shape()[static_cast<size_t>(plan->states()[at].growing_axis)]);
  return out;
}

/// Inputs that share memory with outputs become copies, as references may read them to the end of
/// the last output; states that grow become dense arrays.
void Session::State::densify(const Step& step) {
  for (size_t i = 0; i < step.overwrites.size(); ++i) {
    if (step.overwrites[i] < 0) continue;
    const auto in = static_cast<size_t>(step.overwrites[i]);
    const int growing = in < step.growing.size() ? step.growing[in] : -1;
    if (growing < 0) {
      in_data_[in] = in_data_[in].tensor.clone();
      continue;
    }
    in_data_[in] = dense_state(static_cast<size_t>(growing));
    out_data_[i] = Tensor(out_data_[i].tensor.dtype(), out_data_[i].tensor.shape());
  }
}

/// Brings what a reference gave for a growing state to its buffer.
void Session::State::undensify(const Step& step) {
  for (size_t i = 0; i < step.overwrites.size() && !step.growing.empty(); ++i) {
    if (step.overwrites[i] < 0) continue;
    const int growing = step.growing[static_cast<size_t>(step.overwrites[i])];
    if (growing < 0) continue;
    const auto at = static_cast<size_t>(growing);
    const Tensor& dense = out_data_[i].tensor;
    copy_growing(at, dense.shape(), dense.raw(),
                 dense.shape()[static_cast<size_t>(plan->states()[at].growing_axis)],
                 growths[at].buffer.raw(), growths[at].room);
    out_data_[i] = data[static_cast<size_t>(step.out[i])];
  }
}

/// States that change their sizes and are not written in place, each the only one that ends in its
/// output's memory.
void Session::State::find_turns() {
  const auto& slots = plan->slots();
  const auto root_of = [&](const StateSlot& state) {
    const int output = plan->output_slots()[state.pair.output];
    const Slot& slot = slots[static_cast<size_t>(output)];
    return slot.kind == Slot::Kind::view ? slot.root : output;
  };
  const auto& all = plan->states();
  for (size_t i = 0; i < all.size(); ++i) {
    const Graph& graph = plan->graph();
    const bool resized =
        !(graph.inputs[all[i].pair.input]->type == graph.outputs[all[i].pair.output]->type);
    const int root = root_of(all[i]);
    auto& planned = host_arena_.slots;
    const auto found = std::find(planned.begin(), planned.end(), root);
    const bool alone = std::count_if(all.begin(), all.end(), [&](const StateSlot& other) {
                         return root_of(other) == root;
                       }) == 1;
    if (all[i].in_place || !resized || !alone || found == planned.end()) continue;
    planned.erase(found);
    Turn& turn = turns_.emplace_back();
    turn.state = i;
    turn.slot = static_cast<size_t>(root);
    for (size_t view = 0; view < slots.size(); ++view)
      if (slots[view].kind == Slot::Kind::view && slots[view].root == root)
        turn.views.push_back(view);
  }
}

void Session::State::keep_memory(size_t at) {
  for (Turn& turn : turns_)
    if (turn.state == at) turn.given = true;
}

/// The outputs of such states go to the buffer that does not hold the old value.
void Session::State::place_turns() {
  for (Turn& turn : turns_) {
    const auto view = [&](size_t slot) {
      pointers[slot] = turn.spare.raw();
      data[slot] = Tensor::view(plan->slots()[slot].value->type.dtype, shapes[slot], pointers[slot],
                                turn.spare.owner());
    };
    const int64_t bytes =
        shapes[turn.slot].elements() *
        static_cast<int64_t>(dtype_size(plan->slots()[turn.slot].value->type.dtype));
    if (!turn.spare || turn.spare.elements() < bytes)
      turn.spare = Tensor(DType::u8, Shape{std::max<int64_t>(64, bytes + bytes / 2)});
    view(turn.slot);
    for (const size_t slot : turn.views) view(slot);
  }
}

/// The new value becomes the state; the old one's buffer takes the next.
bool Session::State::take_turn(size_t at) {
  for (Turn& turn : turns_) {
    if (turn.state != at || turn.given) continue;
    const bool ours = turn.held && states[at].raw() == turn.held.raw();
    states[at] = results[plan->states()[at].pair.output].tensor;
    std::swap(turn.held, turn.spare);
    if (!ours) turn.spare = Tensor();
    return true;
  }
  return false;
}

/// Copies the new values that were not written in place. Values that lie in the memory of another
/// state are saved first (two states may exchange theirs), as are results that show an old one.
void Session::State::commit_states() {
  const auto& all = plan->states();
  std::vector<size_t> copied;
  commit_residents();
  for (size_t i = 0; i < all.size(); ++i) {
    if (resident(i)) continue;
    if (!all[i].in_place && !take_turn(i)) copied.push_back(i);
    if (all[i].growing_axis < 0) continue;
    Datum& grown = results[all[i].pair.output];
    states[i] = std::move(grown.tensor);
    grown = Datum();
  }
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
