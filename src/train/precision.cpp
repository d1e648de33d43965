#include "train/precision.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ops/cast/cast.h"

namespace dais::train {
namespace {

const std::vector<std::string> kNames{"fp32", "bf16", "fp16"};

constexpr double kFirstFactor = 65536, kLeastFactor = 1.0 / 16384, kLargestFactor = 1 << 24;
constexpr double kCalmUpdates = 2000;

class Lowering {
 public:
  Lowering(Graph& graph, DType narrow) : g_(graph), narrow_(narrow) {}

  void run(bool whole_attention) {
    for (Node* node : all_nodes())
      if (!whole_attention && node->op->name == "attention") open(*node);
    for (Node* node : all_nodes())
      if (multiplies(*node) || (follows(*node) && reads_narrow(*node)) || normalises(*node))
        lower(*node);
  }

 private:
  std::vector<Node*> all_nodes() const {
    std::vector<Node*> nodes;
    for (const auto& node : g_.nodes()) nodes.push_back(node.get());
    return nodes;
  }

  /// Of attention only the products are lowered, the softmax stays f32.
  void open(Node& node) {
    Graph::InsertBefore place(g_, &node);
    const Values parts = node.op->decompose(g_, node);
    if (parts.empty()) return;
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i]) g_.replace_uses(node.outs[i], parts[i]);
    g_.erase(node);
  }

  static bool multiplies(const Node& node) {
    static const std::unordered_set<std::string_view> names{
        "conv",   "conv_transpose", "gemm", "mat_mul", "matmul",
        "einsum", "lstm",           "gru",  "rnn",     "attention"};
    return names.contains(node.op->name);
  }

  static bool follows(const Node& node) {
    static const std::unordered_set<std::string_view> names{"relu",         "leaky_relu",
                                                            "gelu",         "sigmoid",
                                                            "tanh",         "swish",
                                                            "hard_swish",   "add",
                                                            "mul",          "sub",
                                                            "max_pool",     "transpose",
                                                            "reshape",      "flatten",
                                                            "squeeze",      "unsqueeze",
                                                            "concat",       "split",
                                                            "slice",        "gather",
                                                            "identity",     "clip",
                                                            "elu",          "global_average_pool",
                                                            "average_pool", "stepped_dropout"};
    return names.contains(node.op->name);
  }

  /// What a batch norm has one of per channel stays f32.
  bool normalises(const Node& node) const {
    return node.op->name == "batch_normalization" && widened_.contains(node.in[0]);
  }

  bool is_real(const Value* value) const { return value && value->type.dtype == DType::f32; }

  /// Every f32 operand but constants and biases is a widened 16-bit value.
  bool reads_narrow(const Node& node) const {
    bool any = false;
    for (const Value* value : node.in) {
      if (!is_real(value)) continue;
      if (widened_.contains(value))
        any = true;
      else if (!value->constant() && !is_bias(*value))
        return false;
    }
    return any;
  }

  static bool is_bias(const Value& value) {
    return !value.producer() && value.type.ranked() && value.type.shape->size() == 1;
  }

  Value* narrowed(Value* value, Node& reader) {
    const auto [found, added] = narrow_of_.emplace(value, nullptr);
    if (!added) return found->second;
    Graph::InsertBefore place(g_, &reader);
    return found->second = g_.add(Cast{.to = narrow_}, {value});
  }

  void lower(Node& node) {
    const size_t count = normalises(node) ? 1 : node.in.size();
    for (size_t i = 0; i < count; ++i)
      if (is_real(node.in[i])) g_.set_input(node, i, narrowed(node.in[i], node));
    g_.infer(node);
    Node* behind = g_.next(node);
    for (Value* out : node.outs) {
      if (out->type.dtype != narrow_) continue;
      Graph::InsertBefore place(g_, behind);
      const auto users = out->users();
      const bool is_result = g_.is_output(out);
      if (users.empty() && !is_result) continue;
      Value* wide = g_.add(Cast{.to = DType::f32}, {out});
      for (const Use& use : users) g_.set_input(*use.node, use.index, wide);
      if (is_result) std::replace(g_.outputs.begin(), g_.outputs.end(), out, wide);
      narrow_of_[wide] = out;
      widened_.insert(wide);
    }
  }

  Graph& g_;
  DType narrow_;
  std::unordered_map<const Value*, Value*> narrow_of_;  ///< f32 values in 16 bits
  std::unordered_set<const Value*> widened_;            ///< those that were made in 16 bits
};

}  // namespace

Precision precision_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no precision",
                "--precision", "Use fp32, bf16 or fp16");
  return static_cast<Precision>(found - kNames.begin());
}

std::string_view precision_name(Precision precision) {
  return kNames[static_cast<size_t>(precision)];
}

void lower_precision(Graph& graph, Precision precision, bool whole_attention) {
  if (precision == Precision::fp32) return;
  Lowering(graph, precision == Precision::bf16 ? DType::bf16 : DType::f16).run(whole_attention);
}

std::vector<std::string> beyond_half(const Graph& graph) {
  constexpr float kLargest = 65504;
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) {
    const auto* cast = node->as<Cast>();
    const Tensor* from = cast && cast->to == DType::f16 ? node->in[0]->constant() : nullptr;
    if (!from || from->dtype() != DType::f32) continue;
    const auto elements = from->data<float>();
    if (std::any_of(elements.begin(), elements.end(),
                    [](float x) { return std::isfinite(x) && std::fabs(x) > kLargest; }))
      out.push_back(node->in[0]->name);
  }
  return out;
}

Tensor LossScale::initial() { return Tensor::of<double>({3}, {kFirstFactor, 0, 0}); }

bool LossScale::follow(bool finite) {
  const auto held = held_.data<double>();
  if (!finite) {
    held[0] /= 2;
    held[1] = 0;
    ++held[2];
    return held[0] >= kLeastFactor;
  }
  if (++held[1] >= kCalmUpdates) {
    held[0] = std::min(held[0] * 2, kLargestFactor);
    held[1] = 0;
  }
  return true;
}

}  // namespace dais::train
