// The steps of a session that concern the device: its kernels, and copies there and back.
#include <algorithm>

#include "ir/call.h"
#include "runtime/session_state.h"

namespace dais {

void Session::State::run_device(size_t at) {
  const Step& step = plan->steps()[at];
  const auto to = static_cast<size_t>(step.out[0]);
  if (step.place == Place::device) {
    BoundKernel* kernel = steps[at].kernel;
    if (!kernel) return run_away(at);
    Arguments given = arguments(step);
    given.scratch = device_scratch_ ? device_scratch_->address() : nullptr;
    given.queue = queue.get();
    return queue->run(*kernel, given, static_cast<int>(at));
  }
  const auto from = static_cast<size_t>(step.in[0]);
  const size_t bytes = data[to].tensor.bytes();
  if (bytes == 0) return;
  if (step.place == Place::upload) {
    if (downloading_) wait();
    if (ahead && ahead->deliver(*queue, pointers[to], pointers[from], bytes)) return;
    return queue->upload(pointers[to], pointers[from], bytes);
  }
  queue->download(pointers[to], pointers[from], bytes);
  downloading_ = true;
}

std::shared_ptr<DeviceMemory> Session::State::allocate_activations(size_t bytes) {
  try {
    return queue->allocate(bytes, "activations of " + plan->graph().name);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
    const std::string advice = batch_that_fits(plan->options().backend->free_bytes());
    if (advice.empty()) throw;
    throw Error(error.code(), error.problem(), error.where(), advice + "; " + error.remedy());
  }
}

/// What the activations would take with these values of the symbols.
size_t Session::State::device_arena_bytes(std::span<const int64_t> symbols) const {
  std::vector<int64_t> sizes;
  plan->sizes().evaluate(symbols, sizes);
  std::vector<Lifetime> lifetimes;
  for (const int index : device_arena_.slots) {
    const Slot& slot = plan->slots()[static_cast<size_t>(index)];
    int64_t elements = 1;
    for (const int size : slot.sizes)
      elements *= std::max<int64_t>(sizes[static_cast<size_t>(size)], 0);
    const size_t bytes = static_cast<size_t>(elements) * dtype_size(slot.value->type.dtype);
    lifetimes.push_back({slot.first, slot.last, bytes});
  }
  return plan_memory(lifetimes).total_bytes;
}

/// Names the largest size of the first input's first axis whose activations take at most `bytes`.
std::string Session::State::batch_that_fits(size_t bytes) const {
  const int symbol = axis_symbols_.empty() || axis_symbols_[0].empty() ? -1 : axis_symbols_[0][0];
  if (symbol < 0) return {};
  std::vector<int64_t> symbols = symbols_;
  int64_t& batch = symbols[static_cast<size_t>(symbol)];
  int64_t fits = 0, beyond = batch;
  const int64_t given = batch;
  while (beyond - fits > 1) {
    batch = fits + (beyond - fits) / 2;
    (device_arena_bytes(symbols) <= bytes ? fits : beyond) = batch;
  }
  const std::string name = plan->sizes().symbol_name(static_cast<size_t>(symbol));
  if (fits == 0) return "Not even '" + name + "' = 1 fits beside what is held";
  return "'" + name + "' = " + std::to_string(fits) + " would fit instead of " +
         std::to_string(given);
}

void Session::State::find_segments() {
  constexpr size_t kShortest = 2;
  const auto& all = plan->steps();
  segment_at_.assign(all.size(), -1);
  for (size_t first = 0; first < all.size();) {
    size_t end = first;
    while (end < all.size() && all[end].place == Place::device) ++end;
    if (end - first >= kShortest) {
      segment_at_[first] = static_cast<int>(segments_.size());
      segments_.push_back({first, end - 1, nullptr});
    }
    first = std::max(end, first + 1);
  }
}

/// Recordings hold addresses: those of states on the device may change between runs, all others
/// only when sizes are bound.
void Session::State::notice_moves() {
  std::vector<const void*> now;
  for (const int slot : plan->input_slots())
    if (plan->slots()[static_cast<size_t>(slot)].on_device)
      now.push_back(pointers[static_cast<size_t>(slot)]);
  if (settled_runs_ > 0 && now != recorded_inputs_) settled_runs_ = 0;
  if (settled_runs_ == 0)
    for (Segment& segment : segments_) segment.recording = nullptr;
  recorded_inputs_ = std::move(now);
}

size_t Session::State::run_steps(size_t at) {
  const int found = segment_at_.empty() ? -1 : segment_at_[at];
  Segment* segment = found >= 0 ? &segments_[static_cast<size_t>(found)] : nullptr;
  bool whole = segment && settled_runs_ > 0;
  for (size_t step = at; whole && step <= segment->last; ++step) whole = steps[step].kernel;
  if (!whole) {
    run_step(at);
    return at + 1;
  }
  if (!segment->recording)
    segment->recording = queue->record([&] {
      for (size_t step = at; step <= segment->last; ++step) run_step(step);
    });
  queue->replay(*segment->recording);
  return segment->last + 1;
}

/// Copies that are under way end in memory of this session.
Session::State::~State() { settle(); }

/// Ends what a run that failed has left under way.
void Session::State::settle() {
  if (!queue) return;
  downloading_ = false;
  try {
    queue->wait();
  } catch (const Error&) {
    // That run has reported its error; a lost device copies nothing any more.
  }
}

void Session::State::wait() {
  downloading_ = false;
  const auto found = queue->wait();
  if (!found) return;
  DAIS_CHECK(found->step >= 0 && static_cast<size_t>(found->step) < plan->steps().size());
  raise(plan->steps()[static_cast<size_t>(found->step)], found->fault);
}

void Session::State::finish_device() {
  wait();
  ++settled_runs_;
}

Tensor Session::State::on_device(const Tensor& from) {
  auto memory =
      queue->allocate(std::max<size_t>(from.bytes(), 1), "state of " + plan->graph().name);
  if (from.bytes() > 0) queue->upload(memory->address(), from.raw(), from.bytes());
  void* const address = memory->address();
  return Tensor::view(from.dtype(), from.shape(), address, std::move(memory));
}

Tensor Session::State::on_host(const Tensor& from) {
  Tensor out(from.dtype(), from.shape());
  if (from.bytes() == 0) return out;
  queue->download(out.raw(), from.raw(), from.bytes());
  wait();
  return out;
}

bool Session::State::resident(size_t state) const {
  const int slot = plan->input_slots()[plan->states()[state].pair.input];
  return plan->slots()[static_cast<size_t>(slot)].on_device;
}

void Session::State::bind_resident(size_t state, Tensor memory) {
  states[state] = memory ? on_device(memory) : Tensor();
  bound_memory_.resize(states.size());
  bound_memory_[state] = std::move(memory);
}

/// The state's value in the memory that the caller gave for it, or in new memory.
Tensor Session::State::fetch_resident(size_t state) {
  const Tensor& held = states[state];
  if (!held) return {};
  if (state >= bound_memory_.size() || !bound_memory_[state] ||
      !(bound_memory_[state].shape() == held.shape()))
    return on_host(held);
  Tensor& memory = bound_memory_[state];
  if (held.bytes() > 0) queue->download(memory.raw(), held.raw(), held.bytes());
  wait();
  return memory;
}

void Session::State::fill_resident(size_t state, const Tensor& from) {
  Tensor& held = states[state];
  const bool fits = held && held.dtype() == from.dtype() && held.shape() == from.shape();
  if (!fits)
    held = on_device(from);
  else if (from.bytes() > 0)
    queue->upload(held.raw(), from.raw(), from.bytes());
}

/// New values that were not written in place are copied there; all of them are saved first where
/// one lies in the memory of another.
void Session::State::commit_residents() {
  const auto& all = plan->states();
  std::vector<std::pair<size_t, Tensor>> saved;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!resident(i)) continue;
    const Tensor made = results[all[i].pair.output].tensor;
    results[all[i].pair.output] = Datum();
    if (all[i].in_place || made.bytes() == 0) continue;
    auto memory = queue->allocate(made.bytes(), "state of " + plan->graph().name);
    queue->copy(memory->address(), made.raw(), made.bytes());
    void* const address = memory->address();
    saved.emplace_back(i, Tensor::view(made.dtype(), made.shape(), address, std::move(memory)));
  }
  for (auto& [i, value] : saved) {
    if (!(states[i].shape() == value.shape()))
      states[i] = value;
    else
      queue->copy(states[i].raw(), value.raw(), value.bytes());
  }
  if (!saved.empty()) wait();
}

/// A step whose row refused these sizes: its operands visit the CPU.
void Session::State::run_away(size_t at) {
  const Step& step = plan->steps()[at];
  std::vector<Datum> inputs;
  for (const int slot : step.in) {
    if (slot < 0)
      inputs.emplace_back();
    else if (const Slot& held = plan->slots()[static_cast<size_t>(slot)]; held.packed)
      inputs.emplace_back(*held.value->constant());
    else
      inputs.emplace_back(on_host(data[static_cast<size_t>(slot)].tensor));
  }
  const auto results = evaluate_node(*step.node, inputs);
  for (size_t i = 0; i < step.out.size(); ++i) {
    const Tensor& result = results[i].tensor;
    const auto slot = static_cast<size_t>(step.out[i]);
    DAIS_CHECK(result.shape() == shapes[slot]);
    if (result.bytes() > 0) queue->upload(pointers[slot], result.raw(), result.bytes());
  }
}

}  // namespace dais
