#include "ops/ctc_loss/ctc_loss.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ir/call.h"
#include "ir/inference.h"
#include "ops/gradient.h"
#include "ops/wide.h"

namespace dais {
namespace {

constexpr double kNever = -INFINITY;

double log_add(double a, double b) {
  const double top = std::fmax(a, b);
  return top == kNever ? kNever : top + std::log1p(std::exp(std::fmin(a, b) - top));
}

/// Sizes, and the labels of each example with blanks between them.
struct Batch {
  int64_t length = 0, count = 0, classes = 0, states = 0;
  std::vector<std::vector<int64_t>> labels;
  std::vector<int64_t> steps;

  const double* row(const WideView<double>& logs, int64_t t, int64_t n) const {
    return logs.data() + (t * count + n) * classes;
  }
};

/// Inputs from `first` on are logarithms, targets, and both lengths.
Batch batch_of(const Call& c, size_t first, int64_t blank) {
  const Tensor &logs = c.in(first), &targets = c.in(first + 1);
  c.require(logs.rank() == 3 && targets.rank() == 2, "the inputs are not [T, N, C] and [N, S]");
  Batch out{logs.shape()[0], logs.shape()[1], logs.shape()[2], 2 * targets.shape()[1] + 1, {}, {}};
  c.require(targets.shape()[0] == out.count && c.in(first + 2).elements() == out.count &&
                c.in(first + 3).elements() == out.count,
            "there must be one target and one of each length for each example");
  c.require(blank >= 0 && blank < out.classes, "the blank is not one of the classes");
  const auto all = targets.to_ints(), lengths = c.in(first + 3).to_ints();
  out.steps = c.in(first + 2).to_ints();
  const int64_t longest = targets.shape()[1];
  for (int64_t n = 0; n < out.count; ++n) {
    const int64_t length = lengths[static_cast<size_t>(n)];
    const int64_t steps = out.steps[static_cast<size_t>(n)];
    c.require(length >= 0 && length <= longest, "a target's length is out of range");
    c.require(steps >= 0 && steps <= out.length, "an input's length is out of range");
    std::vector<int64_t> labels{blank};
    for (int64_t i = 0; i < length; ++i) {
      const int64_t label = all[static_cast<size_t>(n * longest + i)];
      if (label < 0 || label >= out.classes || label == blank)
        c.fail("target " + std::to_string(label) + " is no class but the blank");
      labels.push_back(label);
      labels.push_back(blank);
    }
    out.labels.push_back(std::move(labels));
  }
  return out;
}

/// Whether an alignment may go from state s - 2 to s: over a blank between different labels.
bool may_skip(const std::vector<int64_t>& labels, size_t s) {
  return s >= 2 && labels[s] != labels[s - 2] && labels[s] != labels[0];
}

/// Forward sums of one example; gives the logarithm of the target's probability.
double forward(const Batch& b, int64_t n, const WideView<double>& logs, double* sums) {
  const auto& labels = b.labels[static_cast<size_t>(n)];
  const int64_t steps = b.steps[static_cast<size_t>(n)];
  std::fill_n(sums, b.length * b.states, kNever);
  // Without any input only an empty target has been seen.
  if (steps == 0) return labels.size() == 1 ? 0 : kNever;
  for (size_t s = 0; s < std::min<size_t>(labels.size(), 2); ++s)
    sums[s] = b.row(logs, 0, n)[labels[s]];
  for (int64_t t = 1; t < steps; ++t) {
    const double *before = sums + (t - 1) * b.states, *row = b.row(logs, t, n);
    double* now = sums + t * b.states;
    for (size_t s = 0; s < labels.size(); ++s) {
      double sum = before[s];
      if (s >= 1) sum = log_add(sum, before[s - 1]);
      if (may_skip(labels, s)) sum = log_add(sum, before[s - 2]);
      now[s] = sum + row[labels[s]];
    }
  }
  const double* last = sums + (steps - 1) * b.states;
  const double blank = last[labels.size() - 1];
  return labels.size() == 1 ? blank : log_add(blank, last[labels.size() - 2]);
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.set(1, c.dtype(0));
  const Dims &logs = c.shape(0), &targets = c.shape(1);
  c.require(logs.size() == 3 && targets.size() == 2, "the inputs are not [T, N, C] and [N, S]");
  for (size_t i = 1; i < 4; ++i)
    c.require(is_integer(c.dtype(i)), "targets and lengths must be integers");
  c.set(0, c.dtype(0), Dims{logs[1]});
  c.set(1, c.dtype(0), Dims{logs[1], logs[0], Dim(2) * targets[1] + 1});
}

void reference(Call& c) {
  const auto& attrs = c.attrs<CTCLoss>();
  const Batch b = batch_of(c, 0, attrs.blank);
  const WideView<double> logs(c.in(0));
  std::vector<double> losses(static_cast<size_t>(b.count));
  std::vector<double> sums(static_cast<size_t>(b.count * b.length * b.states));
  parallel_for(b.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) {
      const double loss = -forward(b, n, logs, sums.data() + n * b.length * b.states);
      losses[static_cast<size_t>(n)] = attrs.zero_infinity && std::isinf(loss) ? 0 : loss;
    }
  });
  store_wide(c.out(0, Shape{b.count}), 0, losses.data(), b.count);
  if (c.outputs() > 1)
    store_wide(c.out(1, Shape{b.count, b.length, b.states}), 0, sums.data(), std::ssize(sums));
}

void infer_backward(Inference& c) {
  c.set(0, c.dtype(1));
  c.set(0, c.dtype(1), c.shape(1));
}

/// Adds minus the share of the target's probability that passes through each class at each step.
/// `behind` holds the sums over what may follow a state, without the state's own logarithm.
void backward(const Batch& b, int64_t n, const WideView<double>& logs, const double* sums,
              double slope, std::vector<double>& out) {
  const auto& labels = b.labels[static_cast<size_t>(n)];
  const size_t states = labels.size();
  const int64_t steps = b.steps[static_cast<size_t>(n)];
  if (steps == 0) return;
  std::vector<double> behind(states, kNever), next(states);
  behind[states - 1] = 0;
  if (states > 1) behind[states - 2] = 0;
  const double* last = sums + (steps - 1) * b.states;
  double total = kNever;
  for (size_t s = 0; s < states; ++s) total = log_add(total, last[s] + behind[s]);
  if (total == kNever) return;
  for (int64_t t = steps; t-- > 0;) {
    const double* now = sums + t * b.states;
    double* to = out.data() + (t * b.count + n) * b.classes;
    for (size_t s = 0; s < states; ++s)
      if (const double share = now[s] + behind[s] - total; share != kNever)
        to[labels[s]] -= slope * std::exp(share);
    const double* row = b.row(logs, t, n);
    for (size_t s = 0; s < states; ++s) next[s] = behind[s] + row[labels[s]];
    for (size_t s = 0; s < states; ++s) {
      behind[s] = next[s];
      if (s + 1 < states) behind[s] = log_add(behind[s], next[s + 1]);
      if (s + 2 < states && may_skip(labels, s + 2)) behind[s] = log_add(behind[s], next[s + 2]);
    }
  }
}

void reference_backward(Call& c) {
  const Batch b = batch_of(c, 1, c.attrs<CTCLossBackward>().blank);
  c.require(c.in(0).elements() == b.count && c.in(5).shape() == Shape{b.count, b.length, b.states},
            "dy or the forward sums have the wrong shape");
  const WideView<double> dy(c.in(0)), logs(c.in(1)), sums(c.in(5));
  const Shape& shape = c.in(1).shape();
  std::vector<double> out(static_cast<size_t>(shape.elements()));
  parallel_for(b.count, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      backward(b, n, logs, sums.data() + n * b.length * b.states, dy[n], out);
  });
  store_wide(c.out(0, shape), 0, out.data(), std::ssize(out));
}

Values gradient(Graph& g, const Node& n, std::span<Value* const> dy) {
  need_outputs(g, n, 2);
  Values in{dy[0]};
  in.insert(in.end(), n.in.begin(), n.in.end());
  in.push_back(n.outs[1]);
  return {dy[0] ? g.add(CTCLossBackward{.blank = n.as<CTCLoss>()->blank}, in) : nullptr};
}

}  // namespace

const Op CTCLoss::op{
    .name = "ctc_loss",
    .attrs = &AttrsOf<CTCLoss>::info,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    .onnx = {{.type = "CTCLoss", .domain = "dais"}},
};
const Op CTCLossBackward::op{
    .name = "ctc_loss_backward",
    .attrs = &AttrsOf<CTCLossBackward>::info,
    .infer = infer_backward,
    .reference = reference_backward,
    .onnx = {{.type = "CTCLossBackward", .domain = "dais"}},
};

namespace ops {
void define_ctc_loss(OpRegistry& registry) {
  registry.add(CTCLoss::op);
  registry.add(CTCLossBackward::op);
}
}  // namespace ops
}  // namespace dais
