#include "ops/conv/conv_body.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"

namespace dais {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool is_conv(const Node& node) { return node.as<Conv>() || node.as<ConvTranspose>(); }

bool is_f32(const Value* value) {
  return !value || (value->type.is_tensor() && value->type.dtype == DType::f32);
}

/// Reads a chain of nodes behind the convolution as epilogue steps.
class ChainReader {
 public:
  ChainReader(const Graph& graph, ConvBody& body) : graph_(graph), body_(body) {
    const Dims& shape = *body.out_type().shape;
    rank_ = shape.size();
    channel_axis_ = channel_axis(rank_, conv_channels_last(*body.conv));
    channels_ = shape[channel_axis_].constant().value_or(0);
    current_ = body.conv->outs[0];
  }

  /// "" or the reason why the chain cannot be read.
  std::string read() {
    for (const auto& node : graph_.nodes()) {
      if (node.get() == body_.conv) continue;
      if (!is_f32(node->outs[0]) || !(node->outs[0]->type == current_->type))
        return std::string(node->op->name) + " changes type or sizes";
      if (gate_ ? read_product(*node) : read_node(*node)) continue;
      return std::string(node->op->name) + " is no step of an epilogue";
    }
    if (gate_) return "an activation is used beside its input";
    if (graph_.outputs.size() != 1 || graph_.outputs[0] != current_)
      return "more than the last value is used outside";
    return {};
  }

 private:
  void push(EpilogueStep step, const Node& node) {
    simplify(step);
    EpilogueStep* last = body_.steps.empty() ? nullptr : &body_.steps.back();
    if (last && step.kind == StepKind::linear && last->kind == StepKind::linear) {
      last->beta = last->beta * step.alpha + step.beta;
      last->alpha *= step.alpha;
    } else {
      body_.steps.push_back(std::move(step));
    }
    current_ = node.outs[0];
  }

  /// One value for all channels needs no list of them.
  static void simplify(EpilogueStep& step) {
    const auto& values = step.channels;
    const auto differs = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>());
    if (values.empty() || differs != values.end()) return;
    const float value = values[0];
    if (step.kind == StepKind::add)
      step = {.kind = StepKind::linear, .alpha = 1, .beta = value};
    else if (step.kind == StepKind::mul)
      step = {.kind = StepKind::linear, .alpha = value};
    else
      step = {.kind = StepKind::relu, .alpha = value};
  }

  bool read_node(const Node& node) {
    const auto call = scalar_call(node);
    if (!call) return false;
    size_t reads = 0;
    for (const Value* value : node.in) reads += value == current_;
    if (reads != 1) return false;
    if (node.in.size() == 1 || call->function == Scalar::clip) return read_function(node, *call);
    return read_binary(node, call->function);
  }

  /// Functions of the chain's value alone. Sigmoids of a value that is read again later may be the
  /// first half of x * sigmoid(x).
  bool read_function(const Node& node, const ScalarCall& call) {
    const auto alpha = static_cast<float>(call.parameters[0]);
    const auto beta = static_cast<float>(call.parameters[1]);
    EpilogueStep step{.alpha = alpha, .beta = beta};
    switch (call.function) {
      case Scalar::relu: step = {.kind = StepKind::relu}; break;
      case Scalar::leaky_relu: step.kind = StepKind::relu; break;
      case Scalar::sigmoid: step.kind = StepKind::sigmoid; break;
      case Scalar::hard_sigmoid: step.kind = StepKind::hard_sigmoid; break;
      case Scalar::hard_swish: step.kind = StepKind::hard_swish; break;
      case Scalar::swish: step.kind = StepKind::swish; break;
      case Scalar::tanh: step.kind = StepKind::tanh; break;
      case Scalar::gelu: step.kind = StepKind::gelu; break;
      case Scalar::gelu_tanh: step.kind = StepKind::gelu_tanh; break;
      case Scalar::elu: step.kind = StepKind::elu; break;
      case Scalar::softplus: step.kind = StepKind::softplus; break;
      case Scalar::mish: step.kind = StepKind::mish; break;
      case Scalar::neg: step = {.kind = StepKind::linear, .alpha = -1}; break;
      case Scalar::clip: return read_clip(node);
      default: return false;
    }
    if (current_->users().size() == 2 && is_gate(step)) {
      gate_ = node.outs[0];
      gate_step_ = step;
      return true;
    }
    if (current_->users().size() != 1) return false;
    push(std::move(step), node);
    return true;
  }

  static bool is_gate(const EpilogueStep& step) {
    if (step.kind == StepKind::hard_sigmoid)
      return std::abs(step.alpha - 1.0F / 6) < 1e-6F && step.beta == 0.5F;
    return step.kind == StepKind::sigmoid;
  }

  bool read_product(const Node& node) {
    const bool product = node.as<Mul>() && ((node.in[0] == gate_ && node.in[1] == current_) ||
                                            (node.in[1] == gate_ && node.in[0] == current_));
    if (!product || gate_->users().size() != 1) return false;
    gate_ = nullptr;
    if (gate_step_.kind == StepKind::sigmoid)
      push({.kind = StepKind::swish, .alpha = 1}, node);
    else
      push({.kind = StepKind::hard_swish}, node);
    return true;
  }

  static std::optional<float> scalar(const Value* value) {
    const Tensor* tensor = value ? value->constant() : nullptr;
    if (!tensor || tensor->elements() != 1 || tensor->dtype() != DType::f32) return {};
    return tensor->data<float>()[0];
  }

  bool read_clip(const Node& node) {
    if (node.in[0] != current_ || current_->users().size() != 1) return false;
    EpilogueStep step{.kind = StepKind::clip, .alpha = -kLargest, .beta = kLargest};
    for (size_t i = 1; i < node.in.size(); ++i) {
      if (!node.has(i)) continue;
      const auto bound = scalar(node.in[i]);
      if (!bound) return false;
      (i == 1 ? step.alpha : step.beta) = *bound;
    }
    push(std::move(step), node);
    return true;
  }

  /// One value per channel of a constant that broadcasts along every other axis; empty: it doesn't.
  std::vector<float> channel_values(const Value* value) const {
    const Tensor* tensor = value->constant();
    if (!tensor || tensor->dtype() != DType::f32 || channels_ <= 0) return {};
    if (tensor->rank() > rank_ || tensor->elements() == 0) return {};
    const auto values = tensor->data<float>();
    const auto count = static_cast<size_t>(channels_);
    if (values.size() == 1) return std::vector<float>(count, values[0]);
    const size_t skipped = rank_ - tensor->rank();
    if (tensor->elements() != channels_ || channel_axis_ < skipped ||
        tensor->shape()[channel_axis_ - skipped] != channels_)
      return {};
    return {values.begin(), values.end()};
  }

  int input_of(const Value* value) const {
    const auto found = std::find(graph_.inputs.begin(), graph_.inputs.end(), value);
    return found == graph_.inputs.end() ? -1 : static_cast<int>(found - graph_.inputs.begin());
  }

  bool read_binary(const Node& node, Scalar function) {
    if (node.in.size() != 2 || current_->users().size() != 1) return false;
    const bool first = node.in[0] == current_;
    const Value* other = node.in[first ? 1 : 0];
    EpilogueStep step;
    switch (function) {
      case Scalar::add:
      case Scalar::sum: step.kind = StepKind::add; break;
      case Scalar::mul: step.kind = StepKind::mul; break;
      case Scalar::sub:
      case Scalar::div:
        if (!first || !other->constant()) return false;
        step.kind = function == Scalar::sub ? StepKind::add : StepKind::mul;
        break;
      case Scalar::prelu:
        if (!first) return false;
        step.kind = StepKind::prelu;
        break;
      case Scalar::max:
      case Scalar::min: return read_bound(node, function, other);
      default: return false;
    }
    step.channels = channel_values(other);
    for (float& value : step.channels) {
      if (function == Scalar::sub) value = -value;
      if (function == Scalar::div) value = 1 / value;
    }
    if (step.channels.empty()) {
      step.operand = input_of(other);
      step.whole = other->type == current_->type;
      const bool fits = is_f32(other) && (step.whole || of_channels(other));
      if (step.kind == StepKind::prelu || step.operand < 0 || !fits) return false;
    }
    push(std::move(step), node);
    return true;
  }

  bool read_bound(const Node& node, Scalar function, const Value* other) {
    const auto bound = scalar(other);
    if (!bound) return false;
    const bool low = function == Scalar::max;
    push({.kind = StepKind::clip,
          .alpha = low ? *bound : -kLargest,
          .beta = low ? kLargest : *bound},
         node);
    return true;
  }

  /// Whether a run-time operand has one value for each channel or for all. Whatever else can be
  /// expanded oneDNN takes and does not apply rightly.
  bool of_channels(const Value* other) const {
    if (!other->type.ranked() || other->type.shape->size() != rank_) return false;
    for (size_t axis = 0; axis < rank_; ++axis) {
      const Dim& dim = (*other->type.shape)[axis];
      const bool channels = axis == channel_axis_ && dim == (*current_->type.shape)[axis];
      if (!dim.is(1) && !channels) return false;
    }
    return true;
  }

  const Graph& graph_;
  ConvBody& body_;
  size_t rank_ = 0, channel_axis_ = 0;
  int64_t channels_ = 0;
  const Value* current_ = nullptr;
  const Value* gate_ = nullptr;  ///< sigmoid of current_, to be multiplied with it
  EpilogueStep gate_step_;
};

std::string objection(const Node& conv) {
  for (const Value* value : conv.in)
    if (!is_f32(value)) return "an element type other than f32";
  if (!conv.outs[0]->type.ranked()) return "the rank is unknown";
  const size_t rank = conv.outs[0]->type.shape->size();
  if (rank < 3 || rank > 5) return "one to three spatial axes are wanted";
  return {};
}

FoundBody find_in(const Node& fused) {
  const Graph& graph = *fused.regions[0];
  if (graph.size() == 0 || !is_conv(*graph.nodes().front()))
    return {{}, "the body does not start with a convolution"};
  const Node& conv = *graph.nodes().front();
  FoundBody out{ConvBody{.conv = &conv}, objection(conv)};
  if (!out.reason.empty()) return {{}, out.reason};
  const auto index = [&](size_t i) {
    const auto found = conv.has(i) ? std::find(graph.inputs.begin(), graph.inputs.end(), conv.in[i])
                                   : graph.inputs.end();
    return found == graph.inputs.end() ? -1 : static_cast<int>(found - graph.inputs.begin());
  };
  out.body->x = index(0);
  out.body->w = index(1);
  out.body->bias = index(2);
  out.reason = ChainReader(graph, *out.body).read();
  if (out.reason.empty() && out.body->x < 0) out.reason = "the input is a constant";
  if (!out.reason.empty()) out.body.reset();
  return out;
}

}  // namespace

bool conv_channels_last(const Node& conv) {
  if (const auto* attrs = conv.as<Conv>()) return attrs->channels_last;
  return conv.as<ConvTranspose>()->channels_last;
}

Window conv_window(const Node& conv, const Shape& w) {
  Window out;
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  const auto read = [&](const auto& attrs) {
    fill_window(out, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad, false);
  };
  if (const auto* attrs = conv.as<Conv>())
    read(*attrs);
  else
    read(*conv.as<ConvTranspose>());
  return out;
}

int64_t conv_group(const Node& conv) {
  const auto* attrs = conv.as<Conv>();
  return attrs ? attrs->group : conv.as<ConvTranspose>()->group;
}

FoundBody find_conv_body(const Node& node) {
  if (node.as<Fused>()) return find_in(node);
  FoundBody out{ConvBody{.conv = &node}, objection(node)};
  if (!out.reason.empty()) return {{}, out.reason};
  out.body->w = node.in[1]->constant() ? -1 : 1;
  out.body->bias = node.has(2) && !node.in[2]->constant() ? 2 : -1;
  return out;
}

bool is_depthwise_planes(const Node& node) {
  const auto* conv = node.as<Conv>();
  if (!conv || conv->channels_last || !node.in[0]->type.ranked() || !node.in[1]->type.ranked())
    return false;
  const Dims &x = *node.in[0]->type.shape, &w = *node.in[1]->type.shape;
  return x.size() == 4 && w.size() == 4 && x[1].is(conv->group) && w[0].is(conv->group) &&
         w[1].is(1);
}

}  // namespace dais
