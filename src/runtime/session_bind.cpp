#include <algorithm>
#include <utility>

#include "base/span.h"
#include "runtime/session_state.h"

namespace dais {

size_t BoundCache::hash_of(const std::vector<int64_t>& key) {
  uint64_t hash = key.size();
  for (const int64_t number : key)
    hash = (hash ^ static_cast<uint64_t>(number)) * 0x9E3779B97F4A7C15U;
  return hash;
}

BoundCache::Entry* BoundCache::find(const std::vector<int64_t>& key, size_t hash) {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i]->hash == hash && entries_[i]->key == key) {
      std::rotate(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(i),
                  entries_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return entries_.front().get();
    }
  return nullptr;
}

/// The oldest entry is written over, its memory used again.
BoundCache::Entry& BoundCache::add(const std::vector<int64_t>& key, size_t hash,
                                   std::unique_ptr<BoundKernel> kernel) {
  if (entries_.size() < kLimit) entries_.push_back(std::make_unique<Entry>());
  std::rotate(entries_.begin(), entries_.end() - 1, entries_.end());
  Entry& entry = *entries_.front();
  entry.hash = hash;
  entry.key = key;
  entry.kernel = std::move(kernel);
  return entry;
}

Session::State::State(std::shared_ptr<const Plan> shared) : plan(std::move(shared)) {
  const size_t count = plan->slots().size();
  data.resize(count);
  pointers.resize(count);
  shapes.resize(count);
  is_changed_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) mark_changed(i);
  steps.resize(plan->steps().size());
  if (plan->options().backend) {
    queue = plan->options().backend->open_queue();
    find_segments();
  }
  for (size_t at = 0; at < steps.size(); ++at)
    for (const auto& region : plan->steps()[at].regions) {
      steps[at].regions.push_back(std::make_unique<Session>(region));
      steps[at].regions.back()->state_->hand_over_outputs();
    }
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = plan->slots()[i];
    if (slot.kind == Slot::Kind::constant) {
      data[i] = *slot.value->constant();
      pointers[i] = const_cast<void*>(data[i].tensor.raw());
      if (slot.on_device) {
        pointers[i] = slot.packed ? nullptr
                                  : static_cast<std::byte*>(plan->device_constants()->address()) +
                                        slot.offset;
        data[i] = Tensor::view(data[i].tensor.dtype(), data[i].tensor.shape(), pointers[i]);
      }
    }
    if (slot.kind == Slot::Kind::view) {
      const Slot::Kind root = plan->slots()[static_cast<size_t>(slot.root)].kind;
      if (root == Slot::Kind::input) input_views_.push_back(static_cast<int>(i));
      if (root == Slot::Kind::late) late_views_.emplace_back(slot.root, static_cast<int>(i));
    }
    if (slot.kind == Slot::Kind::arena) arena_of(i).slots.push_back(static_cast<int>(i));
  }
  find_turns();
  index_slots();
  symbols_.resize(plan->sizes().symbols());
  input_shapes_.resize(plan->input_slots().size());
  for (const Value* input : plan->graph().inputs) {
    auto& symbols = axis_symbols_.emplace_back();
    auto& sizes = axis_sizes_.emplace_back();
    if (!input->type.shape) continue;
    for (const Dim& dim : *input->type.shape) {
      symbols.push_back(dim.is_constant() ? -1 : plan->sizes().symbol(dim.text()));
      sizes.push_back(dim.constant().value_or(-1));
    }
  }
  states.resize(plan->states().size());
  growths.resize(states.size());
  bound_rooms_.assign(states.size(), 0);
}

/// What a changed size leads to.
void Session::State::index_slots() {
  const auto& slots = plan->slots();
  arena_place_.assign(slots.size(), -1);
  for (Arena* arena : {&host_arena_, &device_arena_}) {
    arena->wanted.assign(arena->slots.size(), 0);
    arena->capacities.assign(arena->slots.size(), 0);
    for (size_t i = 0; i < arena->slots.size(); ++i)
      arena_place_[static_cast<size_t>(arena->slots[i])] = static_cast<int>(i);
  }
  slots_of_size_.assign(plan->sizes().entries(), {});
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].sized)
      for (const int size : slots[i].sizes)
        slots_of_size_[static_cast<size_t>(size)].push_back(static_cast<int>(i));
  steps_of_slot_.assign(slots.size(), {});
  for (size_t at = 0; at < steps.size(); ++at) {
    const Step& step = plan->steps()[at];
    if (!step.bound_early || !step.kernel) continue;
    for (const auto* list : {&step.in, &step.out})
      for (const int slot : *list)
        if (slot >= 0) steps_of_slot_[static_cast<size_t>(slot)].push_back(static_cast<int>(at));
  }
  is_due_.assign(steps.size(), 0);
}

void Session::State::mark_changed(size_t slot) {
  if (is_changed_[slot]) return;
  is_changed_[slot] = 1;
  changed_.push_back(static_cast<int>(slot));
}

void Session::State::hand_over_outputs() {
  const auto& slots = plan->slots();
  const auto handed = [&](int slot) {
    return std::find(handed_slots_.begin(), handed_slots_.end(), slot) != handed_slots_.end();
  };
  hands_over_ = true;
  for (const int output : plan->output_slots()) {
    const Slot& slot = slots[static_cast<size_t>(output)];
    const int root = slot.kind == Slot::Kind::view ? slot.root : output;
    auto& planned = host_arena_.slots;
    const auto found = std::find(planned.begin(), planned.end(), root);
    if (found == planned.end()) continue;
    handed_slots_.push_back(root);
    planned.erase(found);
  }
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].kind == Slot::Kind::view && handed(slots[i].root))
      handed_views_.push_back(static_cast<int>(i));
  index_slots();
}

Session* Session::State::specialized(std::span<const Datum> inputs) {
  if (!plan->specializable()) return nullptr;
  const auto same = [&](const std::vector<Shape>& shapes) {
    if (shapes.size() != inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].kind != Datum::Kind::tensor || !(inputs[i].tensor.shape() == shapes[i]))
        return false;
    return true;
  };
  for (const Specialized& entry : specialized_)
    if (same(entry.inputs)) return entry.session.get();
  if (!same(recent_)) {
    recent_.clear();
    for (const Datum& input : inputs) recent_.push_back(input.tensor.shape());
    recent_runs_ = 0;
  }
  // The first runs also check types and report what is wrong with them.
  if (recent_runs_++ < kPatience) return nullptr;
  if (specialized_.size() == kSpecialized) specialized_.erase(specialized_.begin());
  specialized_.push_back({recent_, nullptr});
  if (auto narrow = plan->specialized(recent_))
    specialized_.back().session = std::make_unique<Session>(std::move(narrow));
  Session* made = specialized_.back().session.get();
  if (made && hands_over_) made->state_->hand_over_outputs();
  return made;
}

void Session::State::bind(std::span<const Datum> inputs) {
  const auto& slots = plan->input_slots();
  if (inputs.size() != slots.size())
    throw Error(Code::invalid_argument, "the model takes " + std::to_string(slots.size()) +
                                            " inputs, but " + std::to_string(inputs.size()) +
                                            " were given");
  if (downloading_) settle();
  bool same = bound_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    data[static_cast<size_t>(slots[i])] = inputs[i];
    pointers[static_cast<size_t>(slots[i])] =
        inputs[i].kind == Datum::Kind::tensor ? const_cast<void*>(inputs[i].tensor.raw()) : nullptr;
    same =
        same && inputs[i].tensor.shape() == input_shapes_[i] &&
        inputs[i].tensor.dtype() == plan->slots()[static_cast<size_t>(slots[i])].value->type.dtype;
  }
  for (size_t i = 0; i < growths.size(); ++i) same = same && growths[i].room == bound_rooms_[i];
  if (!same) {
    const Span span("bind", "sizes");
    bound_ = false;
    settled_runs_ = 0;
    check_inputs(inputs);
    update_shapes();
    check_expressions();
    make_rooms();
    place_arena(host_arena_);
    place_arena(device_arena_);
    bind_steps();
    point_slots();
    for (const int slot : changed_) is_changed_[static_cast<size_t>(slot)] = 0;
    changed_.clear();
    bound_ = true;
    return place_outputs();
  }
  place_outputs();
  // The caller's tensors differ from run to run, and with them the views of them.
  for (int slot : input_views_) point(static_cast<size_t>(slot));
}

void Session::State::check_inputs(std::span<const Datum> inputs) {
  known_.assign(symbols_.size(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = *plan->graph().inputs[i];
    const Type& type = value.type;
    auto fail = [&](const std::string& what) {
      throw Error(Code::invalid_argument, "input '" + value.name + "' " + what, "",
                  "The model wants " + type.text());
    };
    if (!type.is_tensor()) continue;
    if (inputs[i].kind != Datum::Kind::tensor) fail("is missing or not a tensor");
    const Tensor& tensor = inputs[i].tensor;
    if (tensor.dtype() != type.dtype) fail("is " + tensor.describe());
    input_shapes_[i] = tensor.shape();
    if (!type.shape) continue;
    if (tensor.rank() != type.shape->size()) fail("has shape " + tensor.shape().text());
    for (size_t axis = 0; axis < tensor.rank(); ++axis) {
      const int64_t size = tensor.shape()[axis], wanted = axis_sizes_[i][axis];
      if (wanted >= 0 && wanted != size) fail("has shape " + tensor.shape().text());
      const int symbol = axis_symbols_[i][axis];
      if (symbol < 0) continue;
      auto& held = symbols_[static_cast<size_t>(symbol)];
      if (known_[static_cast<size_t>(symbol)] && held != size)
        fail("has size " + std::to_string(size) + " on axis " + std::to_string(axis) + ", but '" +
             (*type.shape)[axis].text() + "' is " + std::to_string(held) + " elsewhere");
      held = size;
      known_[static_cast<size_t>(symbol)] = 1;
    }
  }
}

/// Axes such as "past + 1" follow from other inputs; kernels are bound to what they promise, so a
/// tensor of another size would be read beyond its end.
void Session::State::check_expressions() {
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    const auto slot = static_cast<size_t>(plan->input_slots()[i]);
    if (!plan->slots()[slot].sized || input_shapes_[i] == shapes[slot]) continue;
    const Value& value = *plan->graph().inputs[i];
    throw Error(Code::invalid_argument,
                "input '" + value.name + "' has shape " + input_shapes_[i].text() +
                    ", but the other inputs make it " + shapes[slot].text(),
                "", "The model wants " + value.type.text());
  }
}

/// Only slots that use a size that has changed are looked at.
void Session::State::update_shapes() {
  std::swap(sizes_, sizes_before_);
  plan->sizes().evaluate(symbols_, sizes_);
  const bool all = !shapes_current_ || sizes_before_.size() != sizes_.size();
  shapes_current_ = false;
  if (all)
    for (size_t i = 0; i < shapes.size(); ++i) set_shape(i);
  else
    for (size_t size = 0; size < sizes_.size(); ++size)
      if (sizes_[size] != sizes_before_[size])
        for (const int slot : slots_of_size_[size]) set_shape(static_cast<size_t>(slot));
  shapes_current_ = true;
}

void Session::State::set_shape(size_t i) {
  const Slot& slot = plan->slots()[i];
  if (!slot.sized) return;
  Shape& shape = shapes[i];
  const size_t rank = slot.sizes.size();
  if (shape.rank() != rank) {
    shape = Shape();
    shape.resize(rank);
    mark_changed(i);
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t size = sizes_[static_cast<size_t>(slot.sizes[axis])];
    if (shape[axis] != size) mark_changed(i);
    shape[axis] = size;
    if (size < 0)
      throw Error(Code::invalid_argument,
                  "'" + slot.value->name + "' " + slot.value->type.text() +
                      " has an impossible size for these inputs",
                  slot.value->producer() ? slot.value->producer()->where() : "");
  }
}

/// Keeps the offsets while every buffer still fits its booked size, so that a sequence that grows
/// by one each step is planned anew only now and then.
void Session::State::place_arena(Arena& arena) {
  bool fits = arena.placed || arena.slots.empty();
  for (const int changed : changed_) {
    const auto slot = static_cast<size_t>(changed);
    if (arena_place_[slot] < 0 || &arena_of(slot) != &arena) continue;
    const auto i = static_cast<size_t>(arena_place_[slot]);
    arena.wanted[i] = static_cast<size_t>(shapes[slot].elements()) *
                      dtype_size(plan->slots()[slot].value->type.dtype);
    fits = fits && arena.wanted[i] <= arena.capacities[i] &&
           (arena.capacities[i] < 65536 || arena.wanted[i] >= arena.capacities[i] / 4);
  }
  if (fits) return;
  moved_ = true;
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < arena.slots.size(); ++i) {
    const Slot& slot = plan->slots()[static_cast<size_t>(arena.slots[i])];
    // The first binding is exact; once sizes have changed, an eighth is kept in reserve.
    arena.capacities[i] = arena.placed ? arena.wanted[i] + arena.wanted[i] / 8 : arena.wanted[i];
    lifetimes.push_back({slot.first, slot.last, arena.capacities[i]});
  }
  arena.plan = plan_memory(lifetimes);
  make_arena(arena, static_cast<int64_t>(arena.plan.total_bytes));
  for (size_t i = 0; i < arena.slots.size(); ++i)
    pointers[static_cast<size_t>(arena.slots[i])] = arena.base() + arena.plan.offsets[i];
}

void Session::State::make_arena(Arena& arena, int64_t total) {
  const auto held = static_cast<int64_t>(arena.bytes());
  if (arena.placed && held >= total && held / 4 <= total) return;
  total = std::max<int64_t>(total, 64);
  arena.placed = false;
  if (&arena == &host_arena_) {
    arena.host = Tensor();
    arena.host = Tensor(DType::u8, Shape{total});
  } else {
    arena.device = nullptr;
    arena.device = allocate_activations(static_cast<size_t>(total));
  }
  arena.placed = true;
}

void Session::State::point(size_t i) {
  const Slot& slot = plan->slots()[i];
  if (slot.kind == Slot::Kind::view) pointers[i] = pointers[static_cast<size_t>(slot.root)];
  data[i] = Tensor::view(slot.value->type.dtype, shapes[i], pointers[i]);
}

/// New memory for outputs that leave with the run, and for the views of it.
void Session::State::place_handed() {
  for (const int handed : handed_slots_) {
    const auto slot = static_cast<size_t>(handed);
    Tensor memory(plan->slots()[slot].value->type.dtype, shapes[slot]);
    pointers[slot] = memory.raw();
    data[slot] = std::move(memory);
  }
  for (const int view : handed_views_) {
    const auto i = static_cast<size_t>(view);
    const auto root = static_cast<size_t>(plan->slots()[i].root);
    pointers[i] = pointers[root];
    data[i] = Tensor::view(plan->slots()[i].value->type.dtype, shapes[i], pointers[i],
                           data[root].tensor.owner());
  }
}

void Session::State::place_outputs() {
  place_handed();
  place_turns();
}

/// Memory of the arena and its views stays where it is until sizes change; views of inputs follow
/// the caller.
void Session::State::point_slots() {
  const auto place = [&](size_t i) {
    const Slot& slot = plan->slots()[i];
    const bool fixed_view = slot.kind == Slot::Kind::view &&
                            plan->slots()[static_cast<size_t>(slot.root)].kind != Slot::Kind::late;
    if (slot.kind == Slot::Kind::arena || fixed_view) point(i);
  };
  if (moved_)
    for (size_t i = 0; i < data.size(); ++i) place(i);
  else
    for (const int slot : changed_) place(static_cast<size_t>(slot));
  moved_ = false;
  for (const int slot : input_views_) point(static_cast<size_t>(slot));
}

void Session::State::bind_steps() {
  for (const int slot : changed_)
    for (const int at : steps_of_slot_[static_cast<size_t>(slot)])
      is_due_[static_cast<size_t>(at)] = 1;
  for (const int slot : changed_)
    for (const int at : steps_of_slot_[static_cast<size_t>(slot)])
      if (std::exchange(is_due_[static_cast<size_t>(at)], 0)) bind_step(static_cast<size_t>(at));
}

void Session::State::bind_step(size_t at) {
  const Step& step = plan->steps()[at];
  in_sizes_.clear();
  out_sizes_.clear();
  for (int slot : step.in)
    in_sizes_.push_back(slot >= 0 ? shapes[static_cast<size_t>(slot)] : Shape{});
  for (int slot : step.out) out_sizes_.push_back(shapes[static_cast<size_t>(slot)]);
  step_rooms_.clear();
  for (const int state : step.growing)
    step_rooms_.push_back(state >= 0 ? growths[static_cast<size_t>(state)].room : 0);
  steps[at].kernel = bound_kernel(at, {in_sizes_, out_sizes_, step.overwrites, step_rooms_});
}

BoundKernel* Session::State::bound_kernel(size_t at, const Sizes& sizes) {
  key_.clear();
  for (const auto& list : {sizes.in, sizes.out})
    for (const Shape& shape : list) {
      key_.push_back(static_cast<int64_t>(shape.rank()));
      key_.insert(key_.end(), shape.begin(), shape.end());
    }
  key_.insert(key_.end(), sizes.room.begin(), sizes.room.end());
  BoundCache& cache = steps[at].cache;
  const size_t hash = BoundCache::hash_of(key_);
  BoundCache::Entry* entry = cache.find(key_, hash);
  if (!entry) {
    const Step& step = plan->steps()[at];
    const Span span("bind", step.row->name, step.node->name);
    entry = &cache.add(key_, hash, step.kernel->bind(sizes));
  }
  if (!entry->kernel) return nullptr;
  const auto scratch = static_cast<int64_t>(entry->kernel->scratch_bytes());
  if (plan->steps()[at].place == Place::device) {
    const auto wanted = static_cast<size_t>(scratch);
    if (wanted > 0 && (!device_scratch_ || device_scratch_->bytes() < wanted)) {
      device_scratch_ = nullptr;
      device_scratch_ = queue->allocate(wanted + wanted / 8, "scratch of " + plan->graph().name);
    }
    return entry->kernel.get();
  }
  // More than asked for, as sizes that grow step by step would ask again each time.
  if (scratch > 0 && (!scratch_ || scratch_.elements() < scratch))
    scratch_ = Tensor(DType::u8, Shape{scratch + scratch / 8});
  return entry->kernel.get();
}

}  // namespace dais
