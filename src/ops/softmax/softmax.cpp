#include "ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/softmax/flattened.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

template <typename S>
void infer(Inference& c) {
  c.set(0, c.dtype(0));
  c.axis(c.attrs<S>().axis, c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

/// Largest element of a row and the sum of exp(x - largest). NaN anywhere makes the sum NaN.
struct RowSum {
  double top = -INFINITY, sum = 0;
  RowSum(const double* row, int64_t count, int64_t step) {
    for (int64_t k = 0; k < count; ++k) top = std::fmax(top, row[k * step]);
    for (int64_t k = 0; k < count; ++k) sum += std::exp(row[k * step] - top);
  }
};

void log_softmax_row(double* row, int64_t count, int64_t step) {
  const RowSum s(row, count, step);
  const double shift = std::log(s.sum);
  for (int64_t k = 0; k < count; ++k) row[k * step] = row[k * step] - s.top - shift;
}

template <typename S, void (*row)(double*, int64_t, int64_t)>
void reference(Call& c) {
  const Tensor& x = c.in(0);
  const AxisSplit split = split_axis(x.shape(), normalize_axis(c.attrs<S>().axis, x.rank()));
  std::vector<double> values = to_wide<double>(x);
  parallel_for(split.outer, 1, [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o)
      for (int64_t i = 0; i < split.inner; ++i)
        row(values.data() + o * split.size * split.inner + i, split.size, split.inner);
  });
  store_wide(c.out(0, x.shape()), 0, values.data(), x.elements());
}

/// Needs only the output, so that the input can go early.
Values gradient_softmax(Graph& g, const Node& n, std::span<Value* const> given) {
  const Term y(g, n.outs[0]), dy(g, given[0]);
  const Term weighted = y * dy;
  const Term sum(g, sum_over(g, weighted, {n.as<Softmax>()->axis}, true));
  return {weighted - y * sum};
}

Values gradient_log_softmax(Graph& g, const Node& n, std::span<Value* const> given) {
  const Term y(g, n.outs[0]), dy(g, given[0]);
  const Term sum(g, sum_over(g, dy, {n.as<LogSoftmax>()->axis}, true));
  return {dy - apply<Exp>(y) * sum};
}

}  // namespace

void softmax_row(double* row, int64_t count, int64_t step) {
  const RowSum s(row, count, step);
  for (int64_t k = 0; k < count; ++k) row[k * step] = std::exp(row[k * step] - s.top) / s.sum;
}

const Op Softmax::op{
    .name = "softmax",
    .attrs = &AttrsOf<Softmax>::info,
    .infer = infer<Softmax>,
    .reference = reference<Softmax, softmax_row>,
    .gradient = gradient_softmax,
    .onnx = {{"Softmax", 13},
             {.type = "Softmax", .until = 12, .import = import_flattened<Softmax>}},
};
const Op LogSoftmax::op{
    .name = "log_softmax",
    .attrs = &AttrsOf<LogSoftmax>::info,
    .infer = infer<LogSoftmax>,
    .reference = reference<LogSoftmax, log_softmax_row>,
    .gradient = gradient_log_softmax,
    .onnx = {{"LogSoftmax", 13},
             {.type = "LogSoftmax", .until = 12, .import = import_flattened<LogSoftmax>}},
};

namespace ops {
void define_softmax(OpRegistry& registry) {
  registry.add(Softmax::op);
  registry.add(LogSoftmax::op);
}
}  // namespace ops
}  // namespace dais
