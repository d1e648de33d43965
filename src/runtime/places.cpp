#include "runtime/places.h"

#include <algorithm>
#include <map>

#include "runtime/backend.h"
#include "runtime/copy.h"

namespace dais {

bool holds_products(const Graph& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(), [](const auto& node) {
    if (node->regions.empty()) return node->op->cost != nullptr;
    return std::any_of(node->regions.begin(), node->regions.end(),
                       [](const auto& inner) { return holds_products(*inner); });
  });
}

/// Whether the memory of a value is planned before a run.
bool Places::planned(const Value* value) {
  if (!value->type.is_tensor() || value->type.dtype == DType::string || !value->type.ranked())
    return false;
  return std::all_of(value->type.shape->begin(), value->type.shape->end(),
                     [&](const Dim& dim) { return sizes_.add(dim) >= 0; });
}

bool Places::is_view(const Node& node) {
  return node.op->view && node.has(0) && planned(node.in[0]) && planned(node.outs[0]) &&
         node.in[0]->type.dtype == node.outs[0]->type.dtype;
}

bool Places::device_could_run(const Node& node) {
  if (!options_.backend || !options_.kernels) return false;
  const auto fits = [&](const Value* value) { return !value || planned(value); };
  if (!std::all_of(node.in.begin(), node.in.end(), fits)) return false;
  if (!std::all_of(node.outs.begin(), node.outs.end(), fits)) return false;
  // Arithmetic on sizes serves the CPU, which binds kernels by it.
  return !std::all_of(node.outs.begin(), node.outs.end(),
                      [](const Value* value) { return value->known().has_value(); });
}

bool Places::device_takes(const Node& node) {
  if (!device_could_run(node)) return false;
  const auto& rows = options_.backend->kernels().rows(*node.op);
  const KernelQuery query{node, options_.isa, options_.threads, options_.backend.get()};
  return std::any_of(rows.begin(), rows.end(),
                     [&](const KernelRow* row) { return row->accepts(query).accepted; });
}

bool Places::value_on_device(const Value* value) const {
  if (value->producer()) return device_nodes_.contains(value->producer());
  return resident_.contains(value);
}

void Places::place() {
  for (const auto& node : graph_.nodes()) {
    if (is_view(*node)) {
      views_.insert(node.get());
      if (value_on_device(node->in[0])) device_nodes_.insert(node.get());
    } else if (device_takes(*node)) {
      device_nodes_.insert(node.get());
    } else {
      left_.push_back(node.get());
    }
  }
}

/// States whose old value only the device reads and whose new value it makes. Views of an input
/// follow it, so they are judged by their readers once the input is assumed to be there.
void Places::find_residents() {
  for (const StatePair& pair : options_.states) {
    const Value* input = graph_.inputs[pair.input];
    const Value* output = graph_.outputs[pair.output];
    const auto& users = input->users();
    const bool read = std::all_of(users.begin(), users.end(), [&](const Use& use) {
      return device_nodes_.contains(use.node) && !views_.contains(use.node);
    });
    const bool shown = graph_.is_output(input) ||
                       std::count(graph_.outputs.begin(), graph_.outputs.end(), output) != 1;
    if (read && !shown && !users.empty() && output->producer() &&
        device_nodes_.contains(output->producer()) && planned(input) && input->type == output->type)
      resident_.insert(input);
  }
}

Value* Places::copied(Value* value, bool to_device, Node* before) {
  Value*& made = copies_[value];
  if (made) return made;
  Node* place = before;
  // A result leaves as soon as it is there, so that its memory is free again.
  if (!to_device) place = graph_.next(*value->producer());
  const Graph::InsertBefore insert(graph_, place);
  Node& copy =
      graph_.add_node(Copy{to_device}, {value}, 1, value->name + (to_device ? ".device" : ".host"));
  if (to_device) device_nodes_.insert(&copy);
  made = copy.outs[0];
  return made;
}

void Places::insert_copies() {
  if (!options_.backend || !options_.kernels) return;
  place();
  find_residents();
  std::vector<Node*> order;
  for (const auto& node : graph_.nodes()) order.push_back(node.get());
  for (Node* node : order) {
    const bool here = on_device(*node);
    const size_t operands = views_.contains(node) ? 1 : node->in.size();
    for (size_t i = 0; i < operands; ++i) {
      Value* value = node->in[i];
      if (!value || value->constant() || value_on_device(value) == here) continue;
      graph_.set_input(*node, i, copied(value, here, node));
    }
  }
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    Value* value = graph_.outputs[i];
    if (value->constant() || !value_on_device(value)) continue;
    const bool stays = std::any_of(options_.states.begin(), options_.states.end(), [&](auto& pair) {
      return pair.output == i && resident_.contains(graph_.inputs[pair.input]);
    });
    if (!stays) graph_.outputs[i] = copied(value, false, nullptr);
  }
}

std::vector<std::string> Places::warnings() const {
  struct Left {
    size_t count = 0;
    std::string reason;
  };
  std::map<std::string_view, Left> by_op;
  for (const Node* node : left_) {
    if (node->outs[0]->known()) continue;
    const bool control = node->op->reference && !node->regions.empty();
    const auto& bodies = node->regions;
    // What of its bodies stays behind their plans say.
    if (control && std::any_of(bodies.begin(), bodies.end(),
                               [](const auto& body) { return holds_products(*body); }))
      continue;
    Left& left = by_op[node->op->name];
    if (left.count++ > 0) continue;
    const KernelQuery query{*node, options_.isa, options_.threads, options_.backend.get()};
    for (const KernelRow* row : options_.backend->kernels().rows(*node->op)) {
      const Verdict verdict = row->accepts(query);
      if (verdict || left.reason.empty())
        left.reason = verdict ? "its sizes are known only while running" : verdict.reason;
      if (verdict) break;
    }
    if (control) left.reason = "its bodies hold no products";
    if (left.reason.empty()) left.reason = "no row for this device";
  }
  std::vector<std::string> out;
  for (const auto& [op, left] : by_op)
    out.push_back(std::string(op) + " runs on the CPU (" + std::to_string(left.count) +
                  (left.count == 1 ? " node): " : " nodes): ") + left.reason);
  return out;
}

}  // namespace dais
