#include "runtime/plan.h"

#include <algorithm>

#include "base/file.h"
#include "base/span.h"
#include "base/threads.h"
#include "runtime/backend.h"
#include "runtime/copy.h"
#include "runtime/places.h"

namespace dais {

class PlanBuilder {
 public:
  PlanBuilder(Plan& plan) : plan_(plan), places_(*plan.graph_, plan.options_, plan.sizes_) {
    declare_symbols();
  }

  void build() {
    add_sources();
    may_specialize_ = may_specialize();
    for (const auto& node : plan_.graph_->nodes()) add_node(*node);
    for (const Value* value : plan_.graph_->outputs) {
      const int slot = slot_of(value);
      plan_.output_slots_.push_back(slot);
      touch(slot, static_cast<int>(plan_.steps_.size()));
    }
    place_states();
    share_in_place();
    for (Slot& slot : plan_.slots_)
      if (slot.kind == Slot::Kind::view) slot.root = root_of(slot.root);
    plan_.specializable_ = specializable();
    if (may_specialize_ && !plan_.specializable_)
      for (const Step& step : plan_.steps_) drop_packed(step);
    upload_constants();
  }

  /// Decides what runs on the device; before this the graph may change, after it only its order.
  void place() {
    places_.insert_copies();
    if (plan_.options_.backend) plan_.warnings_ = places_.warnings();
  }

  /// Replaces composite ops that no row takes by what they stand for, until none is left.
  void legalize() {
    Graph& graph = *plan_.graph_;
    std::vector<Node*> work;
    for (const auto& node : graph.nodes()) work.push_back(node.get());
    while (!work.empty()) {
      Node& node = *work.back();
      work.pop_back();
      if (!node.op->decompose || taken(node)) continue;
      if (!plan_.options_.kernels && node.op->reference) continue;
      const size_t before = graph.size();
      Graph::InsertBefore place(graph, &node);
      const Values results = node.op->decompose(graph, node);
      if (results.empty()) continue;
      if (cpu_takes(node) && loops(node, graph.size() - before)) continue;
      for (size_t i = 0; i < node.outs.size(); ++i)
        if (results[i]) graph.replace_uses(node.outs[i], results[i]);
      auto made = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                               [&](const auto& other) { return other.get() == &node; });
      for (size_t i = graph.size() - before; i > 0; --i)
        work.push_back(std::prev(made, static_cast<ptrdiff_t>(i))->get());
      graph.erase(node);
    }
    graph.remove_dead();
  }

 private:
  bool specializable() const {
    if (std::any_of(plan_.states_.begin(), plan_.states_.end(),
                    [](const StateSlot& state) { return state.growing_axis >= 0; }))
      return false;
    return may_specialize_ && sizes_would_help();
  }

  /// Kernels pack their weights once more for each specialised plan, so large models keep one.
  bool may_specialize() const {
    constexpr size_t kMostWeightBytes = size_t{64} << 20;
    if (!plan_.options_.specialize) return false;
    const auto& inputs = plan_.graph_->inputs;
    const bool tensors = std::all_of(inputs.begin(), inputs.end(), [](const Value* value) {
      return value->type.is_tensor() && value->type.dtype != DType::undefined;
    });
    const bool fixed = std::all_of(inputs.begin(), inputs.end(), [](const Value* value) {
      return value->type.static_shape().has_value();
    });
    if (!tensors || fixed) return false;
    return weight_bytes(*plan_.graph_) <= kMostWeightBytes;
  }

  static size_t weight_bytes(const Graph& graph) {
    size_t bytes = 0;
    for (const auto& value : graph.values())
      if (value->constant()) bytes += value->constant()->bytes();
    for (const auto& node : graph.nodes())
      for (const auto& region : node->regions) bytes += weight_bytes(*region);
    return bytes;
  }

  /// Whether a step finds its sizes while running for want of sizes of inputs, rather than because
  /// of what tensors hold or of a step before it. Regions specialise on their own.
  bool sizes_would_help() const {
    std::vector<char> by_contents(plan_.slots_.size(), 0);
    for (const int input : plan_.input_slots_) by_contents[static_cast<size_t>(input)] = 1;
    for (const Step& step : plan_.steps_) {
      bool depends = false, late_before = false;
      for (const int index : step.in) {
        if (index < 0) continue;
        depends |= by_contents[static_cast<size_t>(root_of(index))] != 0;
        late_before |= !slot(index).sized && slot(root_of(index)).kind == Slot::Kind::late;
      }
      const bool choice =
          step.regions.empty() || by_contents[static_cast<size_t>(root_of(step.in[0]))] == 0;
      if (!step.bound_early && !late_before && choice) return true;
      for (const int index : step.out)
        by_contents[static_cast<size_t>(index)] = depends && !slot(index).value->known();
    }
    return false;
  }

  /// What the device could run but has no row for is decomposed into what may have one.
  bool taken(const Node& node) {
    if (places_.device_could_run(node)) return places_.device_takes(node);
    return cpu_takes(node);
  }

  /// Whether one of the nodes just made before `node` is control flow, which no device runs: then
  /// they go again, and the CPU runs the node as it is.
  bool loops(const Node& node, size_t made) {
    Graph& graph = *plan_.graph_;
    std::vector<Node*> nodes;
    auto at = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                           [&](const auto& other) { return other.get() == &node; });
    while (made-- > 0) nodes.push_back((--at)->get());
    if (std::all_of(nodes.begin(), nodes.end(), [](Node* n) { return n->regions.empty(); }))
      return false;
    for (Node* dead : nodes) graph.erase(*dead);
    return true;
  }

  bool cpu_takes(const Node& node) const {
    if (!plan_.options_.kernels) return false;
    const KernelQuery query{node, plan_.options_.isa, plan_.options_.threads};
    for (const KernelRow* row : cpu_kernels().rows(*node.op))
      if (row->isa <= plan_.options_.isa && row->accepts(query)) return true;
    return false;
  }

  /// Symbols that an input's axis names by itself; other axes are checked against them when bound.
  void declare_symbols() {
    for (const Value* input : plan_.graph_->inputs) {
      if (!input->type.shape) continue;
      for (const Dim& dim : *input->type.shape) {
        std::vector<std::string> used;
        dim.collect_symbols(used);
        if (used.size() == 1 && dim.text() == used[0]) plan_.sizes_.add_symbol(used[0]);
      }
    }
  }

  int add_slot(const Value* value, Slot::Kind kind) {
    Slot slot;
    slot.value = value;
    slot.kind = kind;
    if (value->type.ranked()) {
      slot.sized = true;
      for (const Dim& dim : *value->type.shape) {
        slot.sizes.push_back(plan_.sizes_.add(dim));
        slot.sized &= slot.sizes.back() >= 0;
      }
    }
    if (!slot.sized) slot.sizes.clear();
    plan_.slots_.push_back(std::move(slot));
    const int index = static_cast<int>(plan_.slots_.size()) - 1;
    index_[value] = index;
    return index;
  }

  /// The slot from which a step of this place reads.
  int slot_of(const Value* value, bool device) {
    if (!device || !value->constant()) return slot_of(value);
    if (auto found = device_index_.find(value); found != device_index_.end()) return found->second;
    const auto known = index_.find(value);
    const int host = known == index_.end() ? -1 : known->second;
    const int made = add_slot(value, Slot::Kind::constant);
    plan_.slots_[static_cast<size_t>(made)].on_device = true;
    if (host < 0)
      index_.erase(value);
    else
      index_[value] = host;
    return device_index_[value] = made;
  }

  int slot_of(const Value* value) {
    if (auto found = index_.find(value); found != index_.end()) return found->second;
    DAIS_CHECK(value->constant() != nullptr);
    return add_slot(value, Slot::Kind::constant);
  }

  void add_sources() {
    for (const Value* input : plan_.graph_->inputs) {
      plan_.input_slots_.push_back(add_slot(input, Slot::Kind::input));
      plan_.slots_.back().on_device = places_.resident(input);
    }
  }

  /// Constants of the device that each step that reads them has packed.
  void find_packed() {
    std::vector<char> read(plan_.slots_.size(), 0);
    for (const Step& step : plan_.steps_)
      for (const int index : step.in) {
        if (index < 0) continue;
        const auto root = static_cast<size_t>(root_of(index));
        const Tensor* constant = plan_.slots_[root].value->constant();
        if (!constant || !step.kernel || root != static_cast<size_t>(index) ||
            !step.kernel->packs(*constant))
          read[root] = 1;
      }
    for (const int index : plan_.output_slots_) read[static_cast<size_t>(root_of(index))] = 1;
    for (size_t i = 0; i < plan_.slots_.size(); ++i) {
      Slot& slot = plan_.slots_[i];
      slot.packed = slot.kind == Slot::Kind::constant && slot.on_device && read[i] == 0;
    }
  }

  /// The device's constants lie side by side in one piece of its memory.
  void upload_constants() {
    find_packed();
    size_t total = 0;
    for (Slot& slot : plan_.slots_) {
      if (slot.kind != Slot::Kind::constant || !slot.on_device || slot.packed) continue;
      slot.offset = total;
      total += (std::max<size_t>(slot.value->constant()->bytes(), 1) + 255) / 256 * 256;
    }
    if (total == 0) return;
    const auto queue = plan_.options_.backend->open_queue();
    auto memory = queue->allocate(total, "constants of " + plan_.graph_->name);
    for (const Slot& slot : plan_.slots_) {
      if (slot.kind != Slot::Kind::constant || !slot.on_device || slot.packed) continue;
      const Tensor& tensor = *slot.value->constant();
      if (tensor.bytes() == 0) continue;
      queue->upload(static_cast<std::byte*>(memory->address()) + slot.offset, tensor.raw(),
                    tensor.bytes());
    }
    queue->wait();
    plan_.device_constants_ = std::move(memory);
  }

  int root_of(int slot) const {
    while (plan_.slots_[static_cast<size_t>(slot)].kind == Slot::Kind::view)
      slot = plan_.slots_[static_cast<size_t>(slot)].root;
    return slot;
  }

  /// Memory of a slot is needed at this step.
  void touch(int slot, int step) {
    Slot& root = plan_.slots_[static_cast<size_t>(root_of(slot))];
    if (root.first < 0) root.first = step;
    root.last = std::max(root.last, step);
  }

  const Slot& slot(int index) const { return plan_.slots_[static_cast<size_t>(index)]; }

  static bool in_memory_plan(const Value* value) {
    return value->type.is_tensor() && value->type.dtype != DType::string;
  }

  void add_node(const Node& node) {
    Step step;
    step.node = &node;
    const bool device = places_.on_device(node);
    if (const auto* copy = node.as<Copy>())
      step.place = copy->to_device ? Place::upload : Place::download;
    else if (device)
      step.place = Place::device;
    for (const Value* value : node.in)
      step.in.push_back(value ? slot_of(value, step.place == Place::device) : -1);
    const bool inputs_sized = std::all_of(step.in.begin(), step.in.end(), [&](int index) {
      return index < 0 || (slot(index).sized && in_memory_plan(slot(index).value));
    });
    if (node.op->view && node.has(0) && add_view(node, step.in[0])) return;
    if (step.place == Place::host || step.place == Place::device) choose(step);
    if (!may_specialize_) drop_packed(step);
    const bool sets_own_outputs = node.op->reference && !node.regions.empty();
    for (const Value* value : node.outs) step.out.push_back(add_slot(value, Slot::Kind::late));
    step.bound_early = inputs_sized && (step.kernel || !sets_own_outputs) &&
                       std::all_of(step.out.begin(), step.out.end(), [&](int index) {
                         return slot(index).sized && in_memory_plan(slot(index).value);
                       });
    const int at = static_cast<int>(plan_.steps_.size());
    for (int index : step.out) {
      plan_.slots_[static_cast<size_t>(index)].on_device = device;
      if (step.bound_early) plan_.slots_[static_cast<size_t>(index)].kind = Slot::Kind::arena;
      touch(index, at);
    }
    for (int index : step.in)
      if (index >= 0) touch(index, at);
    plan_.steps_.push_back(std::move(step));
  }

  /// Reshape-like ops become other names of their input's memory.
  bool add_view(const Node& node, int source) {
    const Value* out = node.outs[0];
    if (!in_memory_plan(out) || !slot(source).sized || !in_memory_plan(slot(source).value))
      return false;
    if (out->type.dtype != slot(source).value->type.dtype) return false;
    const int index = add_slot(out, Slot::Kind::view);
    Slot& view = plan_.slots_[static_cast<size_t>(index)];
    if (!view.sized) {
      plan_.slots_.pop_back();
      index_.erase(out);
      return false;
    }
    view.root = source;
    view.on_device = slot(source).on_device;
    return true;
  }

  void choose(Step& step) {
    const Node& node = *step.node;
    const PlanOptions& options = plan_.options_;
    // The body of a fused node is for its kernel to read, not to run.
    PlanOptions inner = options;
    inner.states.clear();
    if (node.op->reference)
      for (const auto& region : node.regions) {
        inner.backend = holds_products(*region) ? options.backend : nullptr;
        step.regions.push_back(Plan::create(region->clone(), inner));
        for (const std::string& warning : step.regions.back()->warnings())
          plan_.warnings_.push_back("in a body of " + std::string(node.op->name) + ": " + warning);
      }
    if (options.kernels) {
      const bool device = step.place == Place::device;
      const KernelQuery query{node, options.isa, options.threads,
                              device ? options.backend.get() : nullptr};
      for (const KernelRow* row :
           (device ? options.backend->kernels() : cpu_kernels()).rows(*node.op)) {
        if (row->isa > options.isa) continue;
        Verdict verdict = row->accepts(query);
        if (verdict) {
          step.row = row;
          const Span span("prepare", row->name, node.name);
          step.kernel = row->prepare(query);
          break;
        }
        step.refusals.emplace_back(std::string(row->name), std::move(verdict.reason));
      }
    }
    if (!step.kernel && !node.op->reference && !node.op->decompose)
      throw Error(Code::unsupported, std::string(node.op->name) + " cannot run on this device",
                  node.where());
  }

  static bool worth_dropping(const Value* value) {
    constexpr size_t kFewestBytes = 4096;
    return value && value->constant() && value->constant()->raw() &&
           value->constant()->bytes() >= kFewestBytes;
  }

  /// Constants that only packed kernels use go as soon as the last of those is made, so that
  /// both forms of all weights are never held together.
  void drop_packed(const Step& step) {
    if (!step.kernel || plan_.options_.keep_constants || plan_.options_.backend) return;
    const Node& node = *step.node;
    const Kernel& kernel = *step.kernel;
    for (const auto& body : node.regions) {
      Values packed;
      for (const auto& value : body->values())
        if (worth_dropping(value.get()) && kernel.packs(*value->constant()))
          packed.push_back(value.get());
      for (Value* value : packed) hollow(*body, value);
    }
    const Values operands = node.in;
    for (Value* value : operands) {
      if (!worth_dropping(value) || !kernel.packs(*value->constant())) continue;
      const bool last = ++packed_uses_[value] == value->users().size();
      if (!last || plan_.graph_->is_output(value)) continue;
      const auto found = index_.find(value);
      const int index = found->second;
      index_.erase(found);
      Value* shell = hollow(*plan_.graph_, value);
      plan_.slots_[static_cast<size_t>(index)].value = shell;
      index_[shell] = index;
    }
  }

  /// The constant's type and shape without its elements.
  static Value* hollow(Graph& graph, Value* value) {
    const Tensor& held = *value->constant();
    MappedFile::release(held.raw(), held.bytes());
    Value* shell =
        graph.add_constant(Tensor::view(held.dtype(), held.shape(), nullptr), value->name);
    graph.replace_uses(value, shell);
    graph.remove_dead();
    return shell;
  }

  /// Lets the new value of a state lie in the old one's memory where nobody reads that later.
  void place_states() {
    for (const StatePair& pair : plan_.options_.states) {
      const int source = plan_.input_slots_[pair.input];
      const int target = root_of(plan_.output_slots_[pair.output]);
      StateSlot state{.pair = pair, .in_place = source == target};
      Slot& from = plan_.slots_[static_cast<size_t>(source)];
      const Slot& to = slot(target);
      if (to.kind == Slot::Kind::arena && from.value->type == slot_type(pair) &&
          from.on_device == to.on_device && from.last <= to.first &&
          overwrite(to.first, target, source)) {
        from.last = static_cast<int>(plan_.steps_.size());
        state.in_place = true;
      }
      if (!state.in_place) grow(source, target, state);
      plan_.states_.push_back(state);
    }
  }

  /// A cache whose only reader continues it along one axis.
  void grow(int source, int target, StateSlot& state) {
    Slot& from = plan_.slots_[static_cast<size_t>(source)];
    Slot& to = plan_.slots_[static_cast<size_t>(target)];
    if (to.kind != Slot::Kind::arena || !(to.value->type == slot_type(state.pair))) return;
    const int axis = continued_axis(from.value->type, to.value->type);
    Step& step = plan_.steps_[static_cast<size_t>(to.first)];
    if (axis < 0 || !step.row || !step.row->grows) return;
    if (from.first != to.first || from.last != to.first || used_again(target)) return;
    const auto position = [](const std::vector<int>& list, int slot) {
      return static_cast<size_t>(std::find(list.begin(), list.end(), slot) - list.begin());
    };
    const size_t in = position(step.in, source), out = position(step.out, target);
    if (in == step.in.size() || std::count(step.in.begin(), step.in.end(), source) != 1) return;
    if (!step.row->grows(*step.node, out, in, static_cast<size_t>(axis))) return;
    step.overwrites.resize(step.out.size(), -1);
    step.growing.resize(step.in.size(), -1);
    step.overwrites[out] = static_cast<int>(in);
    step.growing[in] = static_cast<int>(plan_.states_.size());
    from.last = static_cast<int>(plan_.steps_.size());
    to.kind = Slot::Kind::view;
    to.root = source;
    state.in_place = true;
    state.growing_axis = axis;
  }

  /// The only axis on which two shapes differ, or -1.
  static int continued_axis(const Type& before, const Type& after) {
    if (!before.shape || !after.shape || before.shape->size() != after.shape->size()) return -1;
    int axis = -1;
    for (size_t i = 0; i < before.shape->size(); ++i) {
      if ((*before.shape)[i] == (*after.shape)[i]) continue;
      if (axis >= 0) return -1;
      axis = static_cast<int>(i);
    }
    return axis;
  }

  /// Whether a step reads a slot or a view of it, or the graph gives it out more than once.
  bool used_again(int target) const {
    const auto is = [&](int index) { return index >= 0 && root_of(index) == target; };
    const auto& outputs = plan_.output_slots_;
    if (std::count_if(outputs.begin(), outputs.end(), is) != 1) return true;
    return std::any_of(plan_.steps_.begin(), plan_.steps_.end(), [&](const Step& step) {
      return std::any_of(step.in.begin(), step.in.end(), is);
    });
  }

  const Type& slot_type(const StatePair& pair) const {
    return plan_.graph_->outputs[pair.output]->type;
  }

  /// Makes an output of a step share the memory of `source`, if the step may do so.
  bool overwrite(int at, int target, int source) {
    Step& step = plan_.steps_[static_cast<size_t>(at)];
    const auto out =
        static_cast<size_t>(std::find(step.out.begin(), step.out.end(), target) - step.out.begin());
    Slot& to = plan_.slots_[static_cast<size_t>(target)];
    for (const int taken : step.overwrites)
      if (taken >= 0 && root_of(step.in[static_cast<size_t>(taken)]) == source) return false;
    int reader = -1;
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (step.in[i] < 0 || root_of(step.in[i]) != source) continue;
      if (reader >= 0) return false;
      reader = static_cast<int>(i);
    }
    if (reader >= 0) {
      const auto in = static_cast<size_t>(reader);
      if (!step.row || !step.row->overwrites || !step.row->overwrites(*step.node, out, in))
        return false;
      if (!(slot(step.in[in]).value->type == to.value->type)) return false;
      if (step.overwrites.empty()) step.overwrites.assign(step.out.size(), -1);
      step.overwrites[out] = reader;
    }
    to.kind = Slot::Kind::view;
    to.root = reader >= 0 ? step.in[static_cast<size_t>(reader)] : source;
    return true;
  }

  /// Lets a step write over an input where the row allows it and nobody needs it any more.
  void share_in_place() {
    for (size_t at = 0; at < plan_.steps_.size(); ++at) {
      const Step& step = plan_.steps_[at];
      if (!step.row || !step.row->overwrites || !step.bound_early) continue;
      for (const int target : step.out)
        for (const int input : step.in)
          if (input >= 0 && share(static_cast<int>(at), target, root_of(input))) break;
    }
  }

  bool share(int at, int target, int source) {
    Slot& from = plan_.slots_[static_cast<size_t>(source)];
    const Slot& to = slot(target);
    if (from.kind != Slot::Kind::arena || to.kind != Slot::Kind::arena || from.last != at)
      return false;
    if (!overwrite(at, target, source)) return false;
    from.last = std::max(from.last, to.last);
    return true;
  }

  Plan& plan_;
  Places places_;
  std::unordered_map<const Value*, int> index_, device_index_;
  std::unordered_map<const Value*, size_t> packed_uses_;
  bool may_specialize_ = false;
};

std::shared_ptr<const Plan> Plan::create(std::unique_ptr<Graph> graph, const PlanOptions& options) {
  auto plan = std::make_shared<Plan>();
  plan->graph_ = std::move(graph);
  plan->options_ = options;
  if (plan->options_.threads <= 0) plan->options_.threads = usable_cores();
  check_states(*plan->graph_, plan->options_.states);
  PlanBuilder builder(*plan);
  builder.legalize();
  builder.place();
  order_for_states(*plan->graph_, plan->options_.states);
  builder.build();
  return plan;
}

std::shared_ptr<const Plan> Plan::specialized(const std::vector<Shape>& inputs) const {
  std::vector<std::vector<int64_t>> key;
  for (const Shape& shape : inputs) key.push_back(shape.vector());
  const std::lock_guard lock(specialized_mutex_);
  if (auto found = specialized_.find(key); found != specialized_.end()) return found->second;
  if (specialized_.size() >= kSpecialized) return nullptr;
  std::shared_ptr<const Plan>& made = specialized_[std::move(key)];
  try {
    made = create(options_.specialize(*graph_, inputs), options_);
  } catch (const Error&) {
    // A branch that is never taken may break its op's rules at these sizes.
  }
  return made;
}

}  // namespace dais
