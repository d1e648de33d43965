#include "train/losses.h"

#include <algorithm>

#include "ir/call.h"
#include "ops/cast/cast.h"
#include "ops/ctc_loss/ctc_loss.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace dais::train {
namespace {

[[noreturn]] void misfit(const std::string& problem, const std::string& remedy) {
  throw Error(Code::invalid_argument, problem, "--loss", remedy);
}

/// Losses are formed in f32, or in f64 where the network is.
Term to_f32(Graph& g, Value* value) {
  if (value->type.dtype == DType::f32 || value->type.dtype == DType::f64) return {g, value};
  return {g, g.add(Cast{.to = DType::f32}, {value})};
}

Term mean_of(const Term& x) {
  return {*x.graph, x.graph->add(ReduceMean{.keepdims = false}, {x.value})};
}
Term sum_of(const Term& x) {
  return {*x.graph, x.graph->add(ReduceSum{.keepdims = false}, {x.value})};
}

size_t rank_of(const Value* value) { return value->type.ranked() ? value->type.shape->size() : 0; }

/// Class scores as [N, C] or [N, C, …] and their targets as [N] or [N, …].
struct Scores {
  Term scores;
  Value* target;
};

/// Scores with the classes last, as [all places, C].
Scores flattened(Graph& g, const Term& scores, Value* target) {
  if (rank_of(scores) == 2) return {scores, target};
  const Dim classes = scores.value->type.shape->back();
  if (!classes.is_constant()) misfit("the number of classes is not known", "Use --replace-head");
  Value* rows = g.add(Reshape{}, {scores, ints(g, {-1, *classes.constant()})});
  return {{g, rows}, g.add(Reshape{}, {target, ints(g, {-1})})};
}

Value* class_weights(Graph& g, const LossOptions& options, int64_t classes) {
  if (options.class_weights.empty()) return nullptr;
  if (std::ssize(options.class_weights) != classes)
    misfit(std::to_string(options.class_weights.size()) + " class weights for " +
               std::to_string(classes) + " classes",
           "Give one weight per class");
  return g.add_constant(Tensor::of<float>({classes}, std::span(options.class_weights)));
}

/// The part of label smoothing that all classes share: the mean over what counts of the weighted
/// sum of negative logarithms. An extra loss against each class would read the scores once per
/// class; here the sum over classes takes the place of a class number.
Term smooth_part(Graph& g, const Term& logs, const Scores& s, Value* weights,
                 const LossOptions& options) {
  const size_t rank = rank_of(logs);
  Term weighted = logs;
  if (weights) {
    std::vector<int64_t> sizes(rank, 1);
    sizes[1] = -1;
    weighted = logs * Term(g, g.add(Reshape{}, {weights, ints(g, sizes)}));
  }
  const Term each = -Term(g, g.add(ReduceSum{.keepdims = true}, {weighted, ints(g, {1})}));
  // As scores of one class: class 0 wherever the target counts.
  Value* ignored = number_like(g, static_cast<double>(options.ignore_index), s.target);
  Value* counts = g.add(Equal{}, {s.target, ignored});
  const Term zero(g, g.add(Where{}, {counts, s.target, number_like(g, 0, s.target)}));
  const NegativeLogLikelihoodLoss sum{"sum", options.ignore_index};
  const Term total(g, g.add(sum, {-each, zero}));
  // The weight of what counts: the loss of scores that are all -1 is the sum of the weights.
  const Term ones(g, filled_like(g, -1, logs));
  Values in{ones, s.target};
  if (weights) in.push_back(weights);
  return total / Term(g, g.add(sum, in));
}

/// Targets in the shape of the outputs.
Term shaped_target(Graph& g, const Term& output, Value* target) {
  Term wanted(g, target);
  if (target->type.dtype != output.value->type.dtype)
    wanted = {g, g.add(Cast{.to = output.value->type.dtype}, {target})};
  if (rank_of(wanted) == rank_of(output)) return wanted;
  return {g, reshape_like(g, wanted, output)};
}

Term cross_entropy_of_shares(const Term& logs, const Term& shares) {
  Graph& g = *logs.graph;
  const Term each(g, g.add(ReduceSum{.keepdims = false}, {logs * shares, ints(g, {1})}));
  return -mean_of(each);
}

Term cross_entropy(Graph& g, const LossOptions& options, const LossInputs& inputs) {
  Term scores = to_f32(g, inputs.outputs.at(0));
  if (rank_of(scores) < 2)
    misfit(
        "cross entropy needs class scores [N, C], the network gives " + scores.value->type.text(),
        "Choose another loss, or --replace-head");
  Scores s{scores, inputs.target};
  const bool shares = is_float(s.target->type.dtype);
  if (options.kind == LossKind::next_token) s = flattened(g, s.scores, s.target);
  const Dim classes = (*s.scores.value->type.shape)[1];
  const Term logs(g, g.add(LogSoftmax{.axis = 1}, {s.scores.value}));
  const double smoothing = options.label_smoothing;
  if (shares) {
    Term wanted = shaped_target(g, logs, s.target);
    if (smoothing > 0)
      wanted = wanted * (1 - smoothing) + smoothing / static_cast<double>(*classes.constant());
    return cross_entropy_of_shares(logs, wanted);
  }
  if (rank_of(s.target) + 1 != rank_of(logs))
    misfit("class scores " + logs.value->type.text() + " and targets " + s.target->type.text() +
               " do not fit",
           "Targets have the sizes of the scores without the classes");
  Value* weights = class_weights(g, options, classes.constant().value_or(-1));
  Values in{logs, s.target};
  if (weights) in.push_back(weights);
  const Term hard(g, g.add(NegativeLogLikelihoodLoss{"mean", options.ignore_index}, in));
  if (smoothing == 0) return hard;
  if (!classes.is_constant()) misfit("the number of classes is not known", "Use --replace-head");
  const double part = smoothing / static_cast<double>(*classes.constant());
  return hard * (1 - smoothing) + smooth_part(g, logs, s, weights, options) * part;
}

/// log(1 + exp(x)) - x * t: the stable form of -t log(sigmoid) - (1 - t) log(1 - sigmoid).
Term binary_cross_entropy(const Term& scores, const Term& target) {
  return apply<Softplus>(scores) - scores * target;
}

/// d² / 2 up to delta, delta * (|d| - delta / 2) beyond.
Term huber(const Term& difference, double delta) {
  const Term size = apply<Abs>(difference);
  // min(|d|, delta) = c: c * (|d| - c / 2) is both branches in one.
  const Term bound(*size.graph, number_like(*size.graph, delta, size));
  const Term inner(*size.graph, size.graph->add(Min{}, {size.value, bound.value}));
  return inner * (size - inner * 0.5);
}

Term elementwise(Graph& g, const LossOptions& options, const LossInputs& inputs) {
  const Term output = to_f32(g, inputs.outputs.at(0));
  const Term target = shaped_target(g, output, inputs.target);
  if (options.kind == LossKind::binary_cross_entropy)
    return mean_of(binary_cross_entropy(output, target));
  const Term difference = output - target;
  switch (options.kind) {
    case LossKind::mse: return mean_of(difference * difference);
    case LossKind::l1: return mean_of(apply<Abs>(difference));
    default: return mean_of(huber(difference, options.delta));
  }
}

/// Per number of anchors that have a box: alpha_t (1 - p_t)^gamma times binary cross entropy over
/// all anchors, and smooth L1 of the boxes of those that have one.
Term detection(Graph& g, const LossOptions& options, const LossInputs& inputs) {
  const Term boxes = to_f32(g, inputs.outputs.at(0)), scores = to_f32(g, inputs.outputs.at(1));
  const Term wanted = shaped_target(g, boxes, inputs.target);
  const Term classes = shaped_target(g, scores, inputs.classes);
  const Term counts(g, g.add(Cast{.to = boxes.value->type.dtype}, {inputs.counts}));
  const Term p = apply<Sigmoid>(scores);
  const Term miss = p + classes - p * classes * 2;  // 1 - p_t
  const Term alpha = classes * (2 * options.focal_alpha - 1) + (1 - options.focal_alpha);
  Term focus = miss * miss;
  if (options.focal_gamma != 2)
    focus = {g, g.add(Pow{}, {miss.value, number_like(g, options.focal_gamma, miss)})};
  const Term focal = sum_of(alpha * focus * binary_cross_entropy(scores, classes));
  const Term each(g, g.add(ReduceSum{.keepdims = false},
                           {huber(boxes - wanted, options.delta) / options.delta, ints(g, {2})}));
  const Term found = sum_of(each * counts);
  const Term number(g, g.add(Max{}, {sum_of(counts).value, number_like(g, 1, counts)}));
  return (focal + found * options.box_weight) / number;
}

/// How many of the scores' frames stand for each input: its length at the scores' rate, rounded up.
Value* frames_of(Graph& g, const LossInputs& inputs) {
  const int64_t time = rank_of(inputs.input) == 4 ? 3 : 1;
  const Term lengths(g, inputs.input_lengths);
  const Term from(g, g.add(ShapeOf{.start = time, .end = time + 1}, {inputs.input}));
  const Term to(g, g.add(ShapeOf{.start = 1, .end = 2}, {inputs.outputs.at(0)}));
  return (lengths * to + from - 1) / from;
}

/// The mean over the batch of each loss divided by the length of its text. A text too long for its
/// sound counts nothing.
Term ctc(Graph& g, const LossInputs& inputs) {
  const Term scores = to_f32(g, inputs.outputs.at(0));
  if (rank_of(scores) != 3 || !inputs.input_lengths || !inputs.target_lengths)
    misfit("the CTC loss needs scores [N, T, C] and transcripts", "Use sound with transcripts");
  Value* logs = g.add(LogSoftmax{.axis = -1}, {scores.value});
  Value* by_time = g.add(Transpose{.perm = std::vector<int64_t>{1, 0, 2}}, {logs});
  const Values in{by_time, inputs.target, frames_of(g, inputs), inputs.target_lengths};
  const Term each(g, g.add(CTCLoss{.blank = 0, .zero_infinity = true}, in));
  Value* least = number_like(g, 1, inputs.target_lengths);
  Value* lengths = g.add(Max{}, {inputs.target_lengths, least});
  return mean_of(each / Term(g, g.add(Cast{.to = each.value->type.dtype}, {lengths})));
}

}  // namespace

const std::vector<std::string>& loss_names() {
  static const std::vector<std::string> names{
      "cross-entropy", "binary-cross-entropy", "mse", "l1", "huber", "ctc", "detection",
      "next-token"};
  return names;
}

LossKind loss_from_name(std::string_view name) {
  const auto& names = loss_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<LossKind>(found - names.begin());
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no loss", "--loss",
              guess.empty() ? "Use cross-entropy, binary-cross-entropy, mse, l1, huber, ctc, "
                              "detection or next-token"
                            : "Did you mean " + guess + "?");
}

std::string_view loss_name(LossKind kind) { return loss_names()[static_cast<size_t>(kind)]; }

Value*& LossInputs::by_name(std::string_view name) {
  if (name == "target") return target;
  if (name == "classes") return classes;
  if (name == "counts") return counts;
  if (name == "input_lengths") return input_lengths;
  DAIS_CHECK(name == "target_lengths");
  return target_lengths;
}

void learn_anchors(const Graph& network, LossOptions& options) {
  const auto refuse = [&] {
    misfit(
        "the network is no detector: it needs outputs boxes [N, A, 4], scores [N, A, C] and "
        "anchors [A, 4]",
        "Use dais new ssd, or another loss");
  };
  if (network.outputs.size() != 3 || rank_of(network.outputs[1]) != 3) refuse();
  const auto classes = network.outputs[1]->type.shape->back().constant();
  auto part = network.clone();
  part->outputs = {part->outputs[2]};
  part->remove_dead();
  std::vector<Datum> inputs;
  for (const Value* input : part->inputs) {
    if (!input->users().empty()) refuse();
    inputs.emplace_back();
  }
  const Tensor anchors = evaluate(*part, inputs)[0].tensor;
  if (!classes || anchors.rank() != 2 || anchors.shape()[1] != 4 || anchors.dtype() != DType::f32)
    refuse();
  options.anchors = anchors.clone();
  options.box_classes = *classes;
}

Value* add_loss(Graph& graph, const LossOptions& options, const LossInputs& inputs) {
  switch (options.kind) {
    case LossKind::cross_entropy:
    case LossKind::next_token: return cross_entropy(graph, options, inputs);
    case LossKind::ctc: return ctc(graph, inputs);
    case LossKind::detection: return detection(graph, options, inputs);
    default: return elementwise(graph, options, inputs);
  }
}

}  // namespace dais::train
