#include "ops/loss/loss.h"

#include "ir/call.h"
#include "ir/inference.h"
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

void reference(Call& c) {
  const auto& attrs = c.attrs<NegativeLogLikelihoodLoss>();
  const Tensor &x = c.in(0), &target = c.in(1);
  c.require(x.rank() >= 2 && target.rank() + 1 == x.rank(),
            "X must be [N, C, ...] and the targets [N, ...]");
  const int64_t batch = x.shape()[0], classes = x.shape()[1];
  const int64_t cells = x.shape().elements(2, x.rank());
  c.require(target.shape()[0] == batch && target.elements() == batch * cells,
            "X and the targets do not match");
  c.require(!c.has(2) || c.in(2).elements() == classes, "weight must have one value per class");
  const auto targets = target.to_ints();
  const WideView<double> values(x);
  const auto weights =
      c.has(2) ? to_wide<double>(c.in(2)) : std::vector<double>(static_cast<size_t>(classes), 1.0);
  std::vector<double> losses(targets.size());
  double sum = 0, weight = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (attrs.ignore_index && targets[i] == *attrs.ignore_index) continue;
    if (targets[i] < 0 || targets[i] >= classes)
      c.fail("target " + std::to_string(targets[i]) + " is not one of " + std::to_string(classes) +
             " classes");
    const auto at = static_cast<int64_t>(i);
    const int64_t n = at / cells, cell = at % cells;
    const double factor = weights[static_cast<size_t>(targets[i])];
    losses[i] = -values[(n * classes + targets[i]) * cells + cell] * factor;
    sum += losses[i];
    weight += factor;
  }
  if (attrs.reduction == "none")
    return store_wide(c.out(0, target.shape()), 0, losses.data(), std::ssize(losses));
  if (attrs.reduction == "mean") sum /= weight;
  store_wide(c.out(0, Shape{}), 0, &sum, 1);
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
    .onnx = {{"NegativeLogLikelihoodLoss", 12}},
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
  registry.add(SoftmaxCrossEntropyLoss::op);
}
}  // namespace ops
}  // namespace dais
