#include "ops/loss/loss.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/gradient.h"
#include "ops/softmax/softmax.h"
#include "ops/wide.h"

namespace dais {
namespace {

template <typename S>
void infer(Inference& c) {
  const auto& attrs = c.attrs<S>();
  c.set(0, c.dtype(0));
  c.set(1, c.dtype(0));
  if (attrs.reduction != "none" && attrs.reduction != "sum" && attrs.reduction != "mean")
    c.fail("reduction '" + attrs.reduction + "' is not known", "Use none, sum or mean");
  c.set(0, c.dtype(0), attrs.reduction == "none" ? c.shape(1) : Dims{});
  c.require(c.rank(0) >= 2 && c.rank(1) + 1 == c.rank(0),
            "X must be [N, C, ...] and the targets [N, ...]");
  c.set(1, c.dtype(0), c.shape(0));
}

/// One target that counts: where in X it is read, and its weight.
struct Counted {
  size_t target;  ///< its number
  int64_t at;
  double weight;
};

/// Inputs from `first` on are X, target and weight?.
template <typename S>
std::vector<Counted> counted_targets(const Call& c, const S& attrs, size_t first) {
  const Tensor &x = c.in(first), &target = c.in(first + 1);
  const bool weighted = c.has(first + 2);
  c.require(x.rank() >= 2 && target.rank() + 1 == x.rank(),
            "X must be [N, C, ...] and the targets [N, ...]");
  const int64_t batch = x.shape()[0], classes = x.shape()[1];
  const int64_t cells = x.shape().elements(2, x.rank());
  c.require(target.shape()[0] == batch && target.elements() == batch * cells,
            "X and the targets do not match");
  c.require(!weighted || c.in(first + 2).elements() == classes,
            "weight must have one value per class");
  const auto targets = target.to_ints();
  const auto weights = weighted ? to_wide<double>(c.in(first + 2))
                                : std::vector<double>(static_cast<size_t>(classes), 1.0);
  std::vector<Counted> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (attrs.ignore_index && targets[i] == *attrs.ignore_index) continue;
    if (targets[i] < 0 || targets[i] >= classes)
      c.fail("target " + std::to_string(targets[i]) + " is not one of " + std::to_string(classes) +
             " classes");
    const auto number = static_cast<int64_t>(i);
    out.push_back({i, (number / cells * classes + targets[i]) * cells + number % cells,
                   weights[static_cast<size_t>(targets[i])]});
  }
  return out;
}

double total_weight(const std::vector<Counted>& counted) {
  double sum = 0;
  for (const Counted& one : counted) sum += one.weight;
  return sum;
}

void reference(Call& c) {
  const auto& attrs = c.attrs<NegativeLogLikelihoodLoss>();
  const auto counted = counted_targets(c, attrs, 0);
  const WideView<double> values(c.in(0));
  std::vector<double> losses(static_cast<size_t>(c.in(1).elements()));
  double sum = 0;
  for (const Counted& one : counted) sum += losses[one.target] = -values[one.at] * one.weight;
  if (attrs.reduction == "none")
    return store_wide(c.out(0, c.in(1).shape()), 0, losses.data(), std::ssize(losses));
  if (attrs.reduction == "mean") sum /= total_weight(counted);
  store_wide(c.out(0, Shape{}), 0, &sum, 1);
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(1));
  c.set(0, c.dtype(1), c.shape(1));
}

void reference_backward(Call& c) {
  const auto& attrs = c.attrs<NegativeLogLikelihoodLossBackward>();
  const auto counted = counted_targets(c, attrs, 1);
  const bool each = attrs.reduction == "none";
  c.require(c.in(0).elements() == (each ? c.in(2).elements() : 1), "dy is not of the loss's shape");
  const WideView<double> dy(c.in(0));
  const double scale = attrs.reduction == "mean" ? 1 / total_weight(counted) : 1;
  const Tensor& x = c.in(1);
  std::vector<double> out(static_cast<size_t>(x.elements()));
  for (const Counted& one : counted)
    out[static_cast<size_t>(one.at)] =
        -dy[each ? static_cast<int64_t>(one.target) : 0] * one.weight * scale;
  store_wide(c.out(0, x.shape()), 0, out.data(), std::ssize(out));
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<NegativeLogLikelihoodLoss>();
  Values in{dy[0]};
  in.insert(in.end(), n.in.begin(), n.in.end());
  return {g.add(NegativeLogLikelihoodLossBackward{attrs.reduction, attrs.ignore_index}, in)};
}

/// Linear in dy: what it takes out of X's shape is what the loss takes.
Values gradient_backward(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<NegativeLogLikelihoodLossBackward>();
  Values in = {dy[0]};
  in.insert(in.end(), n.in.begin() + 2, n.in.end());
  return {g.add(NegativeLogLikelihoodLoss{attrs.reduction, attrs.ignore_index}, in)};
}

Values decompose(Graph& graph, const Node& node) {
  const auto& attrs = *node.as<SoftmaxCrossEntropyLoss>();
  Value* logs = graph.add(LogSoftmax{.axis = 1}, {node.in[0]});
  Values in = node.in;
  in[0] = logs;
  Values out{graph.add(NegativeLogLikelihoodLoss{attrs.reduction, attrs.ignore_index}, in)};
  if (node.outs.size() > 1) out.push_back(logs);
  return out;
}

}  // namespace

const Op NegativeLogLikelihoodLoss::op{
    .name = "negative_log_likelihood_loss",
    .attrs = &AttrsOf<NegativeLogLikelihoodLoss>::info,
    .infer = infer<NegativeLogLikelihoodLoss>,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{"NegativeLogLikelihoodLoss", 12}},
};
const Op NegativeLogLikelihoodLossBackward::op{
    .name = "negative_log_likelihood_loss_backward",
    .attrs = &AttrsOf<NegativeLogLikelihoodLossBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .gradient = gradient_backward,
    .onnx = {{.type = "NegativeLogLikelihoodLossBackward", .domain = "dais"}},
};
const Op SoftmaxCrossEntropyLoss::op{
    .name = "softmax_cross_entropy_loss",
    .attrs = &AttrsOf<SoftmaxCrossEntropyLoss>::info,
    .infer = infer<SoftmaxCrossEntropyLoss>,
    .decompose = decompose,
    .onnx = {{"SoftmaxCrossEntropyLoss", 12}},
};

namespace ops {
void define_loss(OpRegistry& registry) {
  registry.add(NegativeLogLikelihoodLoss::op);
  registry.add(NegativeLogLikelihoodLossBackward::op);
  registry.add(SoftmaxCrossEntropyLoss::op);
}
}  // namespace ops
}  // namespace dais
