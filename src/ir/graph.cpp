#include "ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "ir/inference.h"

namespace dais {

std::string Node::where() const { return std::string(op->name) + " node '" + name + "'"; }

std::optional<Dims> Value::known() const {
  if (known_) return known_;
  if (!constant_ || constant_.elements() > 64) return std::nullopt;
  if (!is_integer(constant_.dtype()) && constant_.dtype() != DType::boolean) return std::nullopt;
  if (SmallIntTypes::contains(constant_.dtype())) return std::nullopt;
  const auto ints = constant_.to_ints();
  return Dims(ints.begin(), ints.end());
}

Graph::Graph() = default;
Graph::~Graph() = default;

std::string Graph::unique_name(std::string wanted) {
  if (!wanted.empty() && !names_.contains(wanted)) return wanted;
  const std::string base = wanted.empty() ? "v" : wanted + "_";
  std::string candidate;
  do candidate = base + std::to_string(next_name_++);
  while (names_.contains(candidate));
  return candidate;
}

void Graph::rename(Value& value, std::string wanted) {
  if (value.name == wanted) return;
  names_.erase(value.name);
  value.name = unique_name(std::move(wanted));
  names_[value.name] = &value;
}

Value* Graph::new_value(Type type, std::string name) {
  values_.push_back(std::make_unique<Value>());
  Value* value = values_.back().get();
  value->type = std::move(type);
  value->name = unique_name(std::move(name));
  names_[value->name] = value;
  return value;
}

Value* Graph::add_input(Type type, std::string input_name) {
  Value* value = new_value(std::move(type), std::move(input_name));
  std::vector<std::string> symbols;
  if (value->type.shape)
    for (const Dim& dim : *value->type.shape) dim.collect_symbols(symbols);
  for (const auto& symbol : symbols) {
    const size_t depth = std::min(symbol.find_first_not_of('?'), symbol.size());
    if (depth >= dim_prefix_.size()) dim_prefix_ = std::string(depth + 1, '?');
  }
  inputs.push_back(value);
  return value;
}

Value* Graph::add_constant(Tensor tensor, std::string constant_name) {
  DAIS_CHECK(static_cast<bool>(tensor));
  Value* value = new_value(Type::of(tensor), std::move(constant_name));
  value->constant_ = std::move(tensor);
  return value;
}

Node& Graph::add_node(const Op& op, Attrs attrs, Values in, size_t outputs, std::string node_name,
                      std::vector<std::unique_ptr<Graph>> regions) {
  auto owned = std::make_unique<Node>();
  Node& node = *owned;
  node.op = &op;
  node.attrs = std::move(attrs);
  node.in = std::move(in);
  node.name = std::move(node_name);
  node.regions = std::move(regions);
  const auto place = insert_before_ ? insert_before_->position_ : nodes_.end();
  node.position_ = nodes_.insert(place, std::move(owned));
  for (size_t i = 0; i < outputs; ++i) {
    Value* value = new_value({}, i == 0 && !node.name.empty() ? node.name + ":0" : "");
    value->producer_ = &node;
    value->output_index_ = i;
    node.outs.push_back(value);
  }
  for (size_t i = 0; i < node.in.size(); ++i)
    if (node.in[i]) node.in[i]->users_.push_back({&node, i});
  try {
    infer(node);
  } catch (...) {
    for (Value* value : node.outs) value->type = Type::tensor(DType::f32);
    erase(node);
    throw;
  }
  return node;
}

void Graph::infer(Node& node) {
  std::vector<Inference::Input> facts(node.in.size());
  for (size_t i = 0; i < node.in.size(); ++i)
    if (node.in[i]) facts[i] = {&node.in[i]->type, node.in[i]->known(), node.in[i]->constant()};
  Inference inference(node, std::move(facts), node.outs.size(), [this] { return fresh_dim(); });
  inference.run();
  for (size_t i = 0; i < node.outs.size(); ++i) {
    node.outs[i]->type = std::move(inference.types()[i]);
    node.outs[i]->set_known(std::move(inference.knowns()[i]));
  }
}

Graph::InsertBefore::InsertBefore(Graph& graph, Node* node)
    : graph_(graph), saved_(graph.insert_before_) {
  graph.insert_before_ = node;
}

Graph::InsertBefore::~InsertBefore() { graph_.insert_before_ = saved_; }

namespace {

void drop_use(std::vector<Use>& users, const Node* node, size_t index) {
  auto found = std::find_if(users.begin(), users.end(),
                            [&](const Use& use) { return use.node == node && use.index == index; });
  if (found != users.end()) users.erase(found);
}

}  // namespace

void Graph::set_input(Node& node, size_t index, Value* value) {
  if (Value* old = node.in.at(index)) drop_use(old->users_, &node, index);
  node.in[index] = value;
  if (value) value->users_.push_back({&node, index});
}

void Graph::add_node_input(Node& node, Value* value) {
  node.in.push_back(nullptr);
  set_input(node, node.in.size() - 1, value);
}

Value* Graph::add_output(Node& node) {
  Value* value = new_value({}, {});
  value->producer_ = &node;
  value->output_index_ = node.outs.size();
  node.outs.push_back(value);
  infer(node);
  return value;
}

Node* Graph::next(const Node& node) const {
  const auto place = std::next(node.position_);
  return place == nodes_.end() ? nullptr : place->get();
}

namespace {

/// Whether a value's name was made up: by a counter, or after its node.
bool nameless(const Value& value) {
  const std::string& name = value.name;
  if (value.producer() && name == value.producer()->name + ":0") return true;
  return name.size() > 1 && name[0] == 'v' &&
         name.find_first_not_of("0123456789", 1) == std::string::npos;
}

}  // namespace

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  const auto users = from->users_;
  for (const Use& use : users) set_input(*use.node, use.index, to);
  bool was_output = false;
  for (Value*& output : outputs)
    if (output == from) {
      output = to;
      was_output = true;
    }
  const bool own_name = !is_output(to) || std::count(outputs.begin(), outputs.end(), to) == 1;
  const bool named_elsewhere =
      std::find(inputs.begin(), inputs.end(), to) != inputs.end() || to->constant();
  const bool inherits = nameless(*to) && !nameless(*from);
  if (((was_output && own_name) || inherits) && !named_elsewhere) {
    std::swap(from->name, to->name);
    names_[from->name] = from;
    names_[to->name] = to;
  }
}

void Graph::erase(Node& node) {
  for (Value* value : node.outs) DAIS_CHECK(value->users_.empty() && !is_output(value));
  for (size_t i = 0; i < node.in.size(); ++i)
    if (node.in[i]) drop_use(node.in[i]->users_, &node, i);
  std::unordered_set<const Value*> gone(node.outs.begin(), node.outs.end());
  for (Value* value : node.outs) names_.erase(value->name);
  std::erase_if(values_, [&](const auto& value) { return gone.contains(value.get()); });
  nodes_.erase(node.position_);
}

void Graph::move_before(Node& node, Node& other) {
  nodes_.splice(other.position_, nodes_, node.position_);
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

bool Graph::remove_dead() {
  std::unordered_set<const Value*> live(outputs.begin(), outputs.end());
  std::vector<Node*> dead;
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
    Node& node = **it;
    const bool used = std::any_of(node.outs.begin(), node.outs.end(),
                                  [&](const Value* value) { return live.contains(value); });
    if (!used) {
      dead.push_back(&node);
      continue;
    }
    live.insert(node.in.begin(), node.in.end());
  }
  // Inputs stay part of the signature even when nothing reads them.
  live.insert(inputs.begin(), inputs.end());
  for (Node* node : dead) {
    for (size_t i = 0; i < node->in.size(); ++i)
      if (node->in[i]) drop_use(node->in[i]->users_, node, i);
    nodes_.erase(node->position_);
  }
  std::unordered_set<const Value*> produced;
  for (const auto& node : nodes_) produced.insert(node->outs.begin(), node->outs.end());
  const size_t before = values_.size();
  std::erase_if(values_, [&](const auto& value) {
    const bool keep = live.contains(value.get()) || produced.contains(value.get());
    if (!keep) names_.erase(value->name);
    return !keep;
  });
  return !dead.empty() || values_.size() != before;
}

Dim Graph::fresh_dim() { return Dim::symbol(dim_prefix_ + std::to_string(next_dim_++)); }

Values Graph::inline_into(Graph& target, const Values& arguments, const std::string& prefix) const {
  DAIS_CHECK(arguments.size() == inputs.size());
  std::unordered_map<const Value*, Value*> map;
  for (size_t i = 0; i < inputs.size(); ++i) map[inputs[i]] = arguments[i];
  auto get = [&](const Value* value) -> Value* {
    if (!value) return nullptr;
    if (auto found = map.find(value); found != map.end()) return found->second;
    DAIS_CHECK(value->constant() != nullptr);
    return map[value] = target.add_constant(*value->constant(), prefix + value->name);
  };
  for (const auto& node : nodes_) {
    Values in;
    for (const Value* value : node->in) in.push_back(get(value));
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node->regions) regions.push_back(region->clone());
    Node& copy = target.add_node(*node->op, node->attrs, std::move(in), node->outs.size(),
                                 prefix + node->name, std::move(regions));
    for (size_t i = 0; i < node->outs.size(); ++i) map[node->outs[i]] = copy.outs[i];
  }
  Values out;
  for (const Value* value : outputs) out.push_back(get(value));
  return out;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->next_dim_ = next_dim_;
  copy->dim_prefix_ = dim_prefix_;
  std::unordered_map<const Value*, Value*> map;
  for (const auto& value : values_) {
    Value* twin = copy->new_value(value->type, value->name);
    twin->constant_ = value->constant_;
    twin->known_ = value->known_;
    twin->output_index_ = value->output_index_;
    map[value.get()] = twin;
  }
  auto mapped = [&](const Values& values) {
    Values out;
    for (const Value* value : values) out.push_back(value ? map.at(value) : nullptr);
    return out;
  };
  copy->inputs = mapped(inputs);
  for (const auto& node : nodes_) {
    auto owned = std::make_unique<Node>();
    Node& twin = *owned;
    twin.op = node->op;
    twin.attrs = node->attrs;
    twin.name = node->name;
    twin.in = mapped(node->in);
    twin.outs = mapped(node->outs);
    for (const auto& region : node->regions) twin.regions.push_back(region->clone());
    twin.position_ = copy->nodes_.insert(copy->nodes_.end(), std::move(owned));
    for (size_t i = 0; i < twin.in.size(); ++i)
      if (twin.in[i]) twin.in[i]->users_.push_back({&twin, i});
    for (Value* value : twin.outs) value->producer_ = &twin;
  }
  copy->outputs = mapped(outputs);
  return copy;
}

}  // namespace dais
