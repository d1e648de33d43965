#include "train/training_form.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/philox.h"
#include "base/ranks.h"
#include "ops/all_reduce/all_reduce.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/random/random.h"
#include "ops/reshape/reshape.h"

namespace dais::train {
namespace {

/// Operands that shape or steer an operator; they are no weights although they are numbers.
bool steers(const Use& use) {
  static const std::unordered_map<std::string_view, size_t> first_steering{
      {"resize", 1},
      {"dropout", 1},
      {"batch_normalization", 3},
      {"pad", 1},
      {"clip", 1},
      {"one_hot", 1},
      {"range", 0},
      {"quantize_linear", 0},
      {"dequantize_linear", 0},
      {"roi_align", 1},
      {"non_max_suppression", 2},
      {"mel_weight_matrix", 0},
      {"lstm", 4},
      {"gru", 4},
      {"rnn", 4},
  };
  const auto found = first_steering.find(use.node->op->name);
  return found != first_steering.end() && use.index >= found->second;
}

bool all_finite(const Tensor& tensor) {
  bool out = true;
  visit_dtype<FloatTypes>(tensor.dtype(), [&]<typename T>() {
    for (const T value : tensor.data<T>()) out = out && std::isfinite(static_cast<float>(value));
  });
  return out;
}

bool weighs(const Value& value) {
  const Tensor* tensor = value.constant();
  if (!tensor || tensor->elements() < 2 || value.users().empty()) return false;
  if (tensor->dtype() != DType::f32 && tensor->dtype() != DType::f64) return false;
  return std::none_of(value.users().begin(), value.users().end(), steers) && all_finite(*tensor);
}

std::set<std::string> fixed_names(const onnx::Model& model) {
  const auto found = model.metadata.find("dais.fixed");
  std::istringstream words(found == model.metadata.end() ? "" : found->second);
  return {std::istream_iterator<std::string>(words), {}};
}

std::optional<std::regex> expression(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw Error(Code::invalid_argument, "'" + text + "' is no regular expression", "--freeze",
                error.what());
  }
}

/// Rewrites one graph into its training form.
class Former {
 public:
  Former(const onnx::Model& model, const FormOptions& options)
      : options_(options), trained_(trained_names(model, options.freeze)) {
    open_ = model.graph->clone();
  }

  TrainingForm run() {
    Graph& g = *open_;
    const size_t data = g.inputs.size();
    make_inputs(g);
    open_statistics(g);
    settle(data);
    return std::move(form_);
  }

 private:
  /// Constants become inputs of the same name.
  Value* open_constant(Graph& g, Value* constant, std::vector<StateEntry>& entries) {
    const std::string name = constant->name;
    const Tensor initial = *constant->constant();
    g.rename(*constant, name + ".initial");
    Value* input = g.add_input(Type::of(initial), name);
    g.replace_uses(constant, input);
    entries.push_back({name, input, nullptr, initial, {}});
    return input;
  }

  void make_inputs(Graph& g) {
    std::vector<Value*> constants;
    for (const auto& value : g.values())
      if (value->constant() && trained_.contains(value->name)) constants.push_back(value.get());
    for (Value* constant : constants) open_constant(g, constant, form_.parameters);
  }

  /// Running statistics of batch norms that learn become inputs; two norms may share none.
  void open_statistics(Graph& g) {
    for (const auto& node : g.nodes()) {
      const auto* norm = node->as<BatchNormalization>();
      if (!norm || !node->in[1] || !trained_.contains(node->in[1]->name)) continue;
      if (!node->in[3]->constant() || !node->in[4]->constant()) continue;
      for (const size_t i : {3, 4}) open_constant(g, node->in[i], form_.statistics);
    }
  }

  /// Copies the graph with numbers for symbolic sizes; inference runs anew. Nodes that train in
  /// another way than they infer are replaced in the copy.
  void settle(size_t data) {
    form_.graph = std::make_unique<Graph>();
    Graph& g = *form_.graph;
    g.name = open_->name;
    Values arguments;
    for (const Value* input : open_->inputs) {
      Type type = input->type;
      if (type.shape)
        for (Dim& dim : *type.shape) dim = dim.substitute(options_.sizes);
      arguments.push_back(g.add_input(type, input->name));
    }
    form_.data.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(data));
    std::unordered_map<const Value*, Value*> twin;
    for (size_t i = 0; i < arguments.size(); ++i) twin[open_->inputs[i]] = arguments[i];
    for (auto* entries : {&form_.parameters, &form_.statistics})
      for (StateEntry& entry : *entries) entry.before = twin.at(entry.before);
    g.outputs = open_->inline_into(g, arguments);
    form_.step = g.add_input(Type::tensor(DType::i64, Dims{}), "step");
    std::vector<Node*> nodes;
    for (const auto& node : g.nodes()) nodes.push_back(node.get());
    // Either may erase the node that it replaces.
    for (Node* node : nodes)
      if (node->as<BatchNormalization>())
        train_norm(g, *node);
      else if (node->as<Dropout>())
        train_dropout(g, *node);
  }

  StateEntry* statistic(const Value* value) {
    for (StateEntry& entry : form_.statistics)
      if (entry.before == value) return &entry;
    return nullptr;
  }

  void train_norm(Graph& g, Node& node) {
    StateEntry *mean = statistic(node.in[3]), *variance = statistic(node.in[4]);
    if (!mean || !variance || mean->after) return;
    BatchNormalization attrs = *node.as<BatchNormalization>();
    attrs.training_mode = true;
    Graph::InsertBefore place(g, &node);
    if (options_.sync_norms) return share_norm(g, node, *mean, *variance);
    Node& made = g.add_node(attrs, node.in, 3, node.name);
    g.replace_uses(node.outs[0], made.outs[0]);
    mean->after = made.outs[1];
    variance->after = unbiased(g, made, static_cast<double>(attrs.momentum));
    g.erase(node);
  }

  /// The same in small steps, around means over all ranks; each has a batch of the same size.
  void share_norm(Graph& g, Node& node, StateEntry& mean, StateEntry& variance) {
    const auto& attrs = *node.as<BatchNormalization>();
    const auto shape = node.in[0]->type.static_shape();
    if (!shape)
      throw Error(Code::unsupported, "a batch norm over ranks needs known sizes", node.where(),
                  "Leave --sync-norms out");
    const double n = static_cast<double>(shape->elements()) / static_cast<double>((*shape)[1]);
    const double all = n * rank_group().size(), momentum = static_cast<double>(attrs.momentum);
    std::vector<int64_t> axes{0}, channels{-1};
    for (size_t axis = 2; axis < shape->rank(); ++axis) {
      axes.push_back(static_cast<int64_t>(axis));
      channels.push_back(1);
    }
    const auto shared = [&](const Term& x) {
      const Term local = Term(g, sum_over(g, x, axes, true)) / n;
      return Term(g, g.add(AllReduce{}, {local}));
    };
    const auto by_channel = [&](Value* x) {
      return Term(g, g.add(Reshape{}, {x, ints(g, channels)}));
    };
    const auto follow = [&](StateEntry& entry, const Term& now) {
      const Term old(g, entry.before);
      entry.after = old * momentum + Term(g, reshape_like(g, now, old)) * (1 - momentum);
    };
    const Term x(g, node.in[0]), centre = shared(x), off = x - centre, spread = shared(off * off);
    const Term deviation = apply<Sqrt>(spread + static_cast<double>(attrs.epsilon));
    const Term y = off / deviation * by_channel(node.in[1]) + by_channel(node.in[2]);
    follow(mean, centre);
    follow(variance, all > 1 ? spread * (all / (all - 1)) : spread);
    g.replace_uses(node.outs[0], y);
    g.erase(node);
  }

  /// The operator lets the variance follow by sum / n; the estimate of the whole is sum / (n - 1).
  Value* unbiased(Graph& g, const Node& norm, double momentum) {
    const auto shape = norm.in[0]->type.static_shape();
    const Term fresh(g, norm.outs[2]), old(g, norm.in[4]);
    if (!shape) return fresh;
    const double n = static_cast<double>(shape->elements()) / static_cast<double>((*shape)[1]);
    if (n < 2) return fresh;
    const Term kept = old * momentum;
    return kept + (fresh - kept) * (n / (n - 1));
  }

  void train_dropout(Graph& g, Node& node) {
    const Tensor* ratio = node.has(1) ? node.in[1]->constant() : nullptr;
    if (node.has(1) && !ratio) return;
    const double share = ratio ? ratio->to_double() : 0.5;
    if (share <= 0) return;
    Graph::InsertBefore place(g, &node);
    const SteppedDropout attrs{static_cast<float>(share), static_cast<int64_t>(options_.seed),
                               next_stream_++};
    g.replace_uses(node.outs[0], g.add(attrs, {node.in[0], form_.step}, node.name));
  }

  const FormOptions& options_;
  std::set<std::string> trained_;
  std::unique_ptr<Graph> open_;
  TrainingForm form_;
  int64_t next_stream_ = 1;
};

/// The last node with a weight matrix, and which operand that is.
struct Head {
  Node* node = nullptr;
  size_t weight = 0, bias = 0;  ///< bias 0: none
  bool classes_first = false;   ///< the matrix is [classes, width]
};

Head find_head(Graph& graph) {
  Head head;
  for (const auto& node : graph.nodes()) {
    if (const auto* gemm = node->as<Gemm>(); gemm && node->in[1]->constant())
      head = {node.get(), 1, node->has(2) ? size_t{2} : 0, gemm->trans_b};
    if (node->as<MatMul>() && node->in[1]->constant() && node->in[1]->type.shape->size() == 2)
      head = {node.get(), 1, 0, false};
  }
  if (!head.node)
    throw Error(Code::invalid_argument, "the network ends in no linear layer", "--replace-head",
                "Use a network whose scores come from a product with a weight matrix");
  // A product's bias is a sum behind it.
  const auto& users = head.node->outs[0]->users();
  if (head.node->as<MatMul>() && users.size() == 1 && users[0].node->as<Add>()) {
    Node* sum = users[0].node;
    const size_t other = 1 - users[0].index;
    if (sum->in[other]->constant() && sum->in[other]->type.shape->size() == 1) head.bias = SIZE_MAX;
  }
  return head;
}

Tensor drawn(const Shape& shape, double bound, const Philox& random) {
  Tensor out(DType::f32, shape);
  uint64_t at = 0;
  for (float& value : out.data<float>())
    value = static_cast<float>((2 * random.uniform(at++) - 1) * bound);
  return out;
}

void exchange(Graph& graph, Value* constant, Tensor tensor) {
  const std::string name = constant->name;
  graph.rename(*constant, name + ".replaced");
  graph.replace_uses(constant, graph.add_constant(std::move(tensor), name));
}

}  // namespace

std::set<std::string> trained_names(const onnx::Model& model, const std::string& freeze) {
  const auto frozen = expression(freeze);
  const auto fixed = fixed_names(model);
  std::set<std::string> out;
  for (const auto& value : model.graph->values()) {
    if (!weighs(*value) || fixed.contains(value->name)) continue;
    if (frozen && std::regex_search(value->name, *frozen)) continue;
    out.insert(value->name);
  }
  return out;
}

TrainingForm training_form(const onnx::Model& model, const FormOptions& options) {
  return Former(model, options).run();
}

void set_constants(Graph& graph, const std::map<std::string, Tensor>& values) {
  std::vector<Value*> found;
  for (const auto& value : graph.values())
    if (value->constant() && values.contains(value->name)) found.push_back(value.get());
  for (Value* value : found) {
    const Tensor& tensor = values.at(value->name);
    DAIS_CHECK(tensor.shape() == value->constant()->shape());
    exchange(graph, value, tensor);
  }
  graph.remove_dead();
}

void replace_head(onnx::Model& model, int64_t classes, uint64_t seed) {
  if (classes < 1)
    throw Error(Code::invalid_argument, "a classifier has at least one class", "--replace-head");
  Graph& g = *model.graph;
  const Head head = find_head(g);
  const Shape& old = head.node->in[head.weight]->constant()->shape();
  const int64_t width = head.classes_first ? old[1] : old[0];
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  const Shape shape = head.classes_first ? Shape{classes, width} : Shape{width, classes};
  Value* bias = nullptr;
  if (head.bias == SIZE_MAX) {
    const Use use = head.node->outs[0]->users()[0];
    bias = use.node->in[1 - use.index];
  } else if (head.bias) {
    bias = head.node->in[head.bias];
  }
  exchange(g, head.node->in[head.weight], drawn(shape, bound, Philox(seed, 1)));
  if (bias) exchange(g, bias, drawn(Shape{classes}, bound, Philox(seed, 2)));
  for (const auto& node : g.nodes()) g.infer(*node);
  for (size_t i = 0; i < model.output_types.size(); ++i) model.output_types[i] = g.outputs[i]->type;
}

}  // namespace dais::train
