#include "autodiff/control.h"

#include <algorithm>

#include "autodiff/autodiff.h"
#include "ops/control/control.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"

namespace dais {
namespace {

bool is_real(const Value* value) {
  return value && value->type.is_tensor() && is_float(value->type.dtype);
}

/// A value of the region, or zeros like `like` where there is none.
Value* or_zeros(Graph& region, Value* gradient, Value* like) {
  return gradient ? gradient : filled_like(region, 0, like);
}

/// Which captures of a node carry gradients.
std::vector<size_t> real_inputs(const Node& node, size_t first) {
  std::vector<size_t> out;
  for (size_t i = first; i < node.in.size(); ++i)
    if (is_real(node.in[i])) out.push_back(i);
  return out;
}

/// The branch run anew, then its gradient for every capture of either branch (zeros for those of
/// the other). Inputs: the node's captures, then the gradients of its outputs.
std::unique_ptr<Graph> branch_gradient(const Graph& outer, const Node& node, size_t branch,
                                       std::span<Value* const> dy) {
  auto region = std::make_unique<Graph>();
  region->nest_dims_in(outer);
  Values captures, results, seeds, wrt;
  for (size_t i = 1; i < node.in.size(); ++i)
    captures.push_back(region->add_input(node.in[i]->type, {}));
  const size_t split = static_cast<size_t>(node.as<If>()->then_captures);
  const auto middle = captures.begin() + static_cast<std::ptrdiff_t>(split);
  const Values own =
      branch == 0 ? Values(captures.begin(), middle) : Values(middle, captures.end());
  const Values outputs = node.regions[branch]->inline_into(*region, own);
  for (size_t i = 0; i < dy.size(); ++i) {
    if (!dy[i]) continue;
    Value* seed = region->add_input(dy[i]->type, {});
    if (!is_real(outputs[i])) continue;
    results.push_back(outputs[i]);
    seeds.push_back(seed);
  }
  for (Value* value : own)
    if (is_real(value)) wrt.push_back(value);
  const Values found = append_gradients(*region, results, seeds, wrt);
  for (Value* capture : captures) {
    if (!is_real(capture)) continue;
    const auto at = std::find(wrt.begin(), wrt.end(), capture);
    Value* gradient = at == wrt.end() ? nullptr : found[static_cast<size_t>(at - wrt.begin())];
    region->outputs.push_back(or_zeros(*region, gradient, capture));
  }
  region->remove_dead();
  return region;
}

Values gradient_if(Graph& graph, Node& node, std::span<Value* const> dy) {
  const auto real = real_inputs(node, 1);
  Values out(node.in.size(), nullptr);
  if (real.empty()) return out;
  std::vector<std::unique_ptr<Graph>> regions;
  for (const size_t branch : {0, 1}) regions.push_back(branch_gradient(graph, node, branch, dy));
  Values captures(node.in.begin() + 1, node.in.end()), in{node.in[0]};
  for (Value* value : dy)
    if (value) captures.push_back(value);
  in.insert(in.end(), captures.begin(), captures.end());
  in.insert(in.end(), captures.begin(), captures.end());
  const If attrs{static_cast<int64_t>(captures.size())};
  const Values found =
      graph.add_node(If::op, Attrs::of(attrs), in, real.size(), {}, std::move(regions)).outs;
  for (size_t i = 0; i < real.size(); ++i) out[real[i]] = found[i];
  return out;
}

/// A value that the backward Scan reads slice by slice.
struct Sequence {
  Value* whole;
  Type slice;
  int64_t axis, direction;  ///< in which forward met or made it
};

/// The backward Scan while it is built.
class Backward {
 public:
  explicit Backward(Graph& graph) : graph_(graph) {
    body_ = std::make_unique<Graph>();
    body_->nest_dims_in(graph);
  }

  /// A running gradient: starts as `initial`, in the form of `type` inside.
  Value* add_state(Value* initial, const Type& type) {
    initial_.push_back(initial);
    return body_->add_input(type, {});
  }
  Value* add_sequence(const Sequence& sequence) {
    sequences_.push_back(sequence);
    return body_->add_input(sequence.slice, {});
  }
  Value* add_capture(Value* value) {
    captures_.push_back(value);
    return body_->add_input(value->type, {});
  }
  Graph& body() { return *body_; }

  /// `next` follow the states; `slices` are stacked as forward read them.
  Values finish(const Values& next, const Values& slices, const std::vector<Sequence>& like) {
    Scan attrs;
    attrs.states = static_cast<int64_t>(next.size());
    attrs.scans = static_cast<int64_t>(sequences_.size());
    Values in = initial_;
    for (const Sequence& sequence : sequences_) {
      in.push_back(sequence.whole);
      attrs.input_axes.push_back(sequence.axis);
      attrs.input_directions.push_back(1 - sequence.direction);
    }
    in.insert(in.end(), captures_.begin(), captures_.end());
    for (const Sequence& sequence : like) {
      attrs.output_axes.push_back(sequence.axis);
      attrs.output_directions.push_back(1 - sequence.direction);
    }
    body_->outputs = next;
    body_->outputs.insert(body_->outputs.end(), slices.begin(), slices.end());
    body_->remove_dead();
    std::vector<std::unique_ptr<Graph>> regions;
    const size_t outputs = body_->outputs.size();
    regions.push_back(std::move(body_));
    return graph_
        .add_node(Scan::op, Attrs::of(std::move(attrs)), in, outputs, {}, std::move(regions))
        .outs;
  }

 private:
  Graph& graph_;
  std::unique_ptr<Graph> body_;
  Values initial_, captures_;
  std::vector<Sequence> sequences_;
};

/// Makes the body hand out one of its inputs at each step, stacked.
Value* keep_input(Graph& graph, Node& node, size_t input) {
  Graph& body = *node.regions[0];
  // The outputs that the node has not named come first. A Loop's body has its condition beside
  // them.
  while (node.outs.size() + (node.as<Loop>() ? 1 : 0) < body.outputs.size()) graph.add_output(node);
  body.outputs.push_back(body.inputs[input]);
  return graph.add_output(node);
}

int64_t entry(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

/// How a loop's node and body hang together, Scan and Loop alike.
struct Parts {
  size_t first_state = 0, states = 0;      ///< among the node's inputs
  size_t first_capture = 0;                ///< the same
  size_t first_state_output = 0;           ///< among the body's outputs
  std::vector<Sequence> kept = {};         ///< sequences for the body's inputs before the captures
  std::vector<size_t> state_of_kept = {};  ///< per kept one: the state that it is, or SIZE_MAX
  std::vector<size_t> read_of_kept =
      {};  ///< per kept one: the node's input that it is, or SIZE_MAX
  std::vector<std::pair<size_t, Sequence>> slopes = {};  ///< body output, gradient of its stack
};

/// Gradients of states run backwards, those of captures add up, those of sequences are stacked.
Values run_backward(Graph& graph, Node& node, std::span<Value* const> dy, const Graph& forward,
                    const Parts& parts, bool constant_condition) {
  Backward back(graph);
  Values out(node.in.size(), nullptr);
  std::vector<size_t> real_states;
  for (size_t i = 0; i < parts.states; ++i)
    if (is_real(node.in[parts.first_state + i])) real_states.push_back(i);
  const auto real_captures = real_inputs(node, parts.first_capture);
  Values d_states, d_captures;
  for (const size_t i : real_states) {
    Value* initial = dy[i] ? dy[i] : filled_like(graph, 0, node.outs[i]);
    const size_t input = forward.inputs.size() - (node.in.size() - parts.first_state) + i;
    d_states.push_back(back.add_state(initial, forward.inputs[input]->type));
  }
  for (const size_t i : real_captures)
    d_captures.push_back(back.add_state(filled_like(graph, 0, node.in[i]), node.in[i]->type));
  Values arguments, slopes;
  for (const Sequence& sequence : parts.kept) arguments.push_back(back.add_sequence(sequence));
  for (const auto& [output, sequence] : parts.slopes) slopes.push_back(back.add_sequence(sequence));
  const Values kept = arguments;
  Graph& body = back.body();
  if (constant_condition)
    arguments.insert(arguments.begin() + 1, body.add_constant(Tensor::scalar(true)));
  Values captures;
  for (size_t i = parts.first_capture; i < node.in.size(); ++i) {
    captures.push_back(back.add_capture(node.in[i]));
    arguments.push_back(captures.back());
  }
  const Values outputs = forward.inline_into(body, arguments);
  Values results, seeds, wrt;
  for (size_t i = 0; i < real_states.size(); ++i) {
    results.push_back(outputs[parts.first_state_output + real_states[i]]);
    seeds.push_back(d_states[i]);
  }
  for (size_t i = 0; i < slopes.size(); ++i) {
    results.push_back(outputs[parts.slopes[i].first]);
    seeds.push_back(slopes[i]);
  }
  // One entry per state, capture and sequence whose gradient is wanted.
  std::vector<size_t> reads;
  for (const size_t i : real_states)
    for (size_t k = 0; k < kept.size(); ++k)
      if (parts.state_of_kept[k] == i) wrt.push_back(kept[k]);
  for (const size_t i : real_captures) wrt.push_back(captures[i - parts.first_capture]);
  for (size_t k = 0; k < kept.size(); ++k)
    if (parts.read_of_kept[k] != SIZE_MAX && is_real(kept[k])) {
      reads.push_back(k);
      wrt.push_back(kept[k]);
    }
  const Values found = append_gradients(body, results, seeds, wrt);
  Values next, slices;
  std::vector<Sequence> like;
  for (size_t i = 0; i < wrt.size(); ++i) {
    const size_t capture = i - real_states.size();
    if (i < real_states.size()) {
      next.push_back(or_zeros(body, found[i], wrt[i]));
    } else if (capture < real_captures.size()) {
      Value* sum = d_captures[capture];
      next.push_back(found[i] ? body.add(Add{}, {sum, found[i]}) : sum);
    } else {
      slices.push_back(or_zeros(body, found[i], wrt[i]));
      like.push_back(parts.kept[reads[capture - real_captures.size()]]);
    }
  }
  const Values all = back.finish(next, slices, like);
  for (size_t i = 0; i < real_states.size(); ++i) out[parts.first_state + real_states[i]] = all[i];
  for (size_t i = 0; i < real_captures.size(); ++i)
    out[real_captures[i]] = all[real_states.size() + i];
  for (size_t i = 0; i < reads.size(); ++i)
    out[parts.read_of_kept[reads[i]]] = all[next.size() + i];
  return out;
}

Values gradient_scan(Graph& graph, Node& node, std::span<Value* const> dy) {
  const Scan attrs = *node.as<Scan>();
  const auto states = static_cast<size_t>(attrs.states), scans = static_cast<size_t>(attrs.scans);
  const auto forward = node.regions[0]->clone();
  Parts parts{
      .first_state = 0, .states = states, .first_capture = states + scans, .first_state_output = 0};
  for (size_t i = 0; i < states; ++i) {
    parts.kept.push_back({keep_input(graph, node, i), forward->inputs[i]->type, 0, 0});
    parts.state_of_kept.push_back(i);
    parts.read_of_kept.push_back(SIZE_MAX);
  }
  for (size_t i = 0; i < scans; ++i) {
    parts.kept.push_back({node.in[states + i], forward->inputs[states + i]->type,
                          entry(attrs.input_axes, i), entry(attrs.input_directions, i)});
    parts.state_of_kept.push_back(SIZE_MAX);
    parts.read_of_kept.push_back(states + i);
  }
  for (size_t i = states; i < dy.size(); ++i)
    if (dy[i])
      parts.slopes.emplace_back(
          i, Sequence{dy[i], forward->outputs[i]->type, entry(attrs.output_axes, i - states),
                      entry(attrs.output_directions, i - states)});
  return run_backward(graph, node, dy, *forward, parts, false);
}

Values gradient_loop(Graph& graph, Node& node, std::span<Value* const> dy) {
  const auto states = static_cast<size_t>(node.as<Loop>()->states);
  const auto forward = node.regions[0]->clone();
  Parts parts{
      .first_state = 2, .states = states, .first_capture = 2 + states, .first_state_output = 1};
  // The iteration's number, which also tells how often the body ran; then the states.
  for (size_t i = 0; i <= states; ++i) {
    const size_t input = i == 0 ? 0 : i + 1;
    parts.kept.push_back({keep_input(graph, node, input), forward->inputs[input]->type, 0, 0});
    parts.state_of_kept.push_back(i == 0 ? SIZE_MAX : i - 1);
    parts.read_of_kept.push_back(SIZE_MAX);
  }
  for (size_t i = states; i < dy.size(); ++i)
    if (dy[i])
      parts.slopes.emplace_back(i + 1, Sequence{dy[i], forward->outputs[i + 1]->type, 0, 0});
  return run_backward(graph, node, dy, *forward, parts, true);
}

}  // namespace

ControlGradient control_gradient(const Op& op) {
  if (&op == &If::op) return gradient_if;
  if (&op == &Scan::op) return gradient_scan;
  return &op == &Loop::op ? gradient_loop : nullptr;
}

}  // namespace dais
