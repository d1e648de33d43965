#include "ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/reshape/reshape.h"
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

/// A shape for Reshape: at most one size may be open.
std::optional<std::vector<int64_t>> reshape_target(const Dims& dims) {
  std::vector<int64_t> out;
  for (const Dim& dim : dims) out.push_back(dim.constant().value_or(-1));
  if (std::count(out.begin(), out.end(), -1) > 1) return std::nullopt;
  return out;
}

/// Before version 13 the axes from `axis` on (default 1) are one row. That is the same as today's
/// operator when all but the first of them have size 1.
template <typename S>
Values import_flattened(OnnxImport& c) {
  Value* x = c.input(0);
  if (!x) c.fail("the input is missing");
  if (!x->type.shape) c.fail("the rank of the input is unknown", "Convert the model to opset 13");
  const Dims& shape = *x->type.shape;
  const int64_t rank = std::ssize(shape), axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank)
    c.fail("axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) +
           " tensor");
  const int64_t first = axis < 0 ? axis + rank : axis;
  bool single = first < rank;
  for (int64_t i = first + 1; i < rank; ++i) single = single && shape[static_cast<size_t>(i)].is(1);
  if (single) return c.emit(S{.axis = first}, {x});
  const auto target = reshape_target(shape);
  if (!target) c.fail("more than one size of the input is open", "Fix all sizes but the batch");
  Value* flat = c.graph.add(Flatten{.axis = first}, {x});
  Value* rows = c.graph.add(S{.axis = 1}, {flat});
  return {c.graph.add(Reshape{.allowzero = true}, {rows, c.ints(*target)}, std::string(c.name))};
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
    .onnx = {{"Softmax", 13},
             {.type = "Softmax", .until = 12, .import = import_flattened<Softmax>}},
};
const Op LogSoftmax::op{
    .name = "log_softmax",
    .attrs = &AttrsOf<LogSoftmax>::info,
    .infer = infer<LogSoftmax>,
    .reference = reference<LogSoftmax, log_softmax_row>,
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
