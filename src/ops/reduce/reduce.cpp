#include "ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elements.h"
#include "ops/reduce/reduce_gradient.h"
#include "ops/strided.h"

namespace dais {

void define_scans(OpRegistry& registry);

namespace {

constexpr int64_t kChunk = 256;

struct Row {
  Reduction reduction;
  const Op* op;
  std::string_view name, onnx;
  int axes_input_since;  ///< before it, axes were an attribute
};
constexpr Row kRows[] = {
    {Reduction::sum, &ReduceSum::op, "reduce_sum", "ReduceSum", 13},
    {Reduction::mean, &ReduceMean::op, "reduce_mean", "ReduceMean", 18},
    {Reduction::max, &ReduceMax::op, "reduce_max", "ReduceMax", 18},
    {Reduction::min, &ReduceMin::op, "reduce_min", "ReduceMin", 18},
    {Reduction::prod, &ReduceProd::op, "reduce_prod", "ReduceProd", 18},
    {Reduction::l1, &ReduceL1::op, "reduce_l1", "ReduceL1", 18},
    {Reduction::l2, &ReduceL2::op, "reduce_l2", "ReduceL2", 18},
    {Reduction::log_sum, &ReduceLogSum::op, "reduce_log_sum", "ReduceLogSum", 18},
    {Reduction::log_sum_exp, &ReduceLogSumExp::op, "reduce_log_sum_exp", "ReduceLogSumExp", 18},
    {Reduction::sum_square, &ReduceSumSquare::op, "reduce_sum_square", "ReduceSumSquare", 18},
};

const Row* row_of(std::string_view onnx_name) {
  for (const auto& row : kRows)
    if (row.onnx == onnx_name) return &row;
  return nullptr;
}

/// Marks the axes to reduce. `axes` is empty when none were given.
std::vector<bool> reduced_axes(const std::vector<int64_t>& axes, bool noop, size_t rank) {
  std::vector<bool> reduced(rank, axes.empty() && !noop);
  for (const int64_t axis : axes) reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

/// Axes are given but not known: only the rank may be told.
void infer_unknown_axes(Inference& c, bool keepdims) {
  const size_t rank = c.rank(0);
  size_t kept = rank;
  if (!keepdims) {
    const Dims& count = c.shape(1);
    if (count.size() != 1 || !count[0].is_constant()) return;
    const int64_t dropped = *count[0].constant();
    if (dropped > static_cast<int64_t>(rank)) c.fail("more axes are reduced than there are");
    // An empty list reduces all axes or none.
    if (dropped == 0) return;
    kept -= static_cast<size_t>(dropped);
  }
  Dims shape;
  for (size_t i = 0; i < kept; ++i) shape.push_back(c.fresh());
  c.set(0, c.dtype(0), std::move(shape));
}

std::optional<Dim> combine(Reduction reduction, const Dims& values) {
  if (values.empty()) return std::nullopt;
  Dim out = values[0];
  for (size_t i = 1; i < values.size(); ++i) switch (reduction) {
      case Reduction::sum: out = out + values[i]; break;
      case Reduction::prod: out = out * values[i]; break;
      case Reduction::max: out = max(out, values[i]); break;
      case Reduction::min: out = min(out, values[i]); break;
      default: return std::nullopt;
    }
  return out;
}

void infer(Inference& c) {
  const ReduceAttrs attrs = reduce_attrs(c.node);
  const Reduction reduction = *reduction_of(*c.node.op);
  const DType dtype = c.dtype(0);
  const bool ordering = reduction == Reduction::max || reduction == Reduction::min;
  if (!is_float(dtype) && !is_integer(dtype) && !(ordering && dtype == DType::boolean))
    c.fail("element type " + std::string(dtype_name(dtype)) + " cannot be reduced");
  c.set(0, dtype);
  std::vector<int64_t> axes;
  if (c.has(1)) {
    auto known = c.known_ints(1);
    if (!known) return infer_unknown_axes(c, attrs.keepdims);
    axes = std::move(*known);
  }
  const Dims& x = c.shape(0);
  for (const int64_t axis : axes) c.axis(axis, x.size());
  const auto reduced = reduced_axes(axes, attrs.noop_with_empty_axes, x.size());
  Dims shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i])
      shape.push_back(x[i]);
    else if (attrs.keepdims)
      shape.push_back(1);
  }
  c.set(0, dtype, std::move(shape));
  const auto known = c.known(0);
  if (known && x.size() == 1 && reduced[0])
    if (auto result = combine(reduction, *known)) c.set_known(0, {*result});
}

/// What a reduction starts from and does with each element and at the end.
template <typename C>
C start_of(Reduction reduction) {
  using Limits = std::numeric_limits<C>;
  constexpr bool real = std::is_same_v<C, double>;
  switch (reduction) {
    case Reduction::prod: return 1;
    case Reduction::max: return real ? static_cast<C>(-INFINITY) : Limits::lowest();
    case Reduction::min: return real ? static_cast<C>(INFINITY) : Limits::max();
    default: return 0;
  }
}

template <typename C>
void accumulate(Reduction reduction, C& total, C x) {
  // Unsigned arithmetic, so that integer overflow wraps.
  using U = std::conditional_t<std::is_same_v<C, double>, double, uint64_t>;
  const U a = static_cast<U>(total), b = static_cast<U>(x);
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
    case Reduction::log_sum: total = static_cast<C>(a + b); break;
    case Reduction::prod: total = static_cast<C>(a * b); break;
    case Reduction::max: total = total != total || total > x ? total : x; break;
    case Reduction::min: total = total != total || total < x ? total : x; break;
    case Reduction::l1: total = static_cast<C>(x < C{0} ? a - b : a + b); break;
    case Reduction::l2:
    case Reduction::sum_square: total = static_cast<C>(a + b * b); break;
    case Reduction::log_sum_exp: break;
  }
}

template <typename C>
C finish(Reduction reduction, C total, int64_t count) {
  switch (reduction) {
    case Reduction::mean:
      if constexpr (std::is_same_v<C, double>) return total / static_cast<double>(count);
      return count == 0 ? C{} : total / static_cast<C>(count);
    case Reduction::l2: return static_cast<C>(std::sqrt(static_cast<double>(total)));
    case Reduction::log_sum: return static_cast<C>(std::log(static_cast<double>(total)));
    default: return total;
  }
}

/// Calls body(result index, step of the result, values, n) for runs of elements of x.
template <typename C, typename Body>
void for_runs(const Tensor& x, const Shape& kept, Body&& body) {
  const auto loop = StridedLoop<2>::broadcast(x.shape(), {&x.shape(), &kept});
  std::array<C, kChunk> values;
  loop.rows([&](const auto& at) {
    for (int64_t done = 0; done < loop.size(); done += kChunk) {
      const int64_t n = std::min(kChunk, loop.size() - done);
      load_elements(x, at[0] + done, 1, n, values.data());
      body(at[1] + done * loop.step(1), loop.step(1), values.data(), n);
    }
  });
}

std::vector<double> log_sum_exp(const Tensor& x, const Shape& kept) {
  const auto size = static_cast<size_t>(kept.elements());
  std::vector<double> top(size, -INFINITY), total(size, 0);
  for_runs<double>(x, kept, [&](int64_t at, int64_t step, const double* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      double& most = top[static_cast<size_t>(at + i * step)];
      most = most != most || most > values[i] ? most : values[i];
    }
  });
  // Subtracting an infinite maximum would give NaN.
  for (double& most : top)
    if (std::isinf(most)) most = 0;
  for_runs<double>(x, kept, [&](int64_t at, int64_t step, const double* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const auto to = static_cast<size_t>(at + i * step);
      total[to] += std::exp(values[i] - top[to]);
    }
  });
  for (size_t i = 0; i < size; ++i) total[i] = top[i] + std::log(total[i]);
  return total;
}

template <typename C>
std::vector<C> reduce(Reduction reduction, const Tensor& x, const Shape& kept) {
  std::vector<C> total(static_cast<size_t>(kept.elements()), start_of<C>(reduction));
  for_runs<C>(x, kept, [&](int64_t at, int64_t step, const C* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      accumulate(reduction, total[static_cast<size_t>(at + i * step)], values[i]);
  });
  const int64_t count = total.empty() ? 0 : x.elements() / kept.elements();
  for (C& value : total) value = finish(reduction, value, count);
  return total;
}

/// Cuts a 64-bit start value to the limits of the element type.
template <typename C>
C limit_to(DType dtype, C value) {
  if constexpr (!std::is_same_v<C, double>)
    if (IntegerTypes::contains(dtype))
      visit_dtype<IntegerTypes>(dtype, [&]<typename T>() {
        using Limits = std::numeric_limits<T>;
        value = std::clamp(value, static_cast<C>(Limits::min()), static_cast<C>(Limits::max()));
      });
  return value;
}

void reference(Call& c) {
  const ReduceAttrs attrs = reduce_attrs(c.node);
  const Reduction reduction = *reduction_of(*c.node.op);
  const Tensor& x = c.in(0);
  const auto reduced = reduced_axes(c.has(1) ? c.in(1).to_ints() : std::vector<int64_t>{},
                                    attrs.noop_with_empty_axes, x.rank());
  Shape kept = x.shape(), shape;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (!reduced[i] || attrs.keepdims) shape.push_back(kept[i]);
  }
  Tensor& y = c.out(0, x.dtype(), shape);
  if (reduction == Reduction::log_sum_exp) {
    const auto result = log_sum_exp(x, kept);
    return store_elements(y, 0, 1, y.elements(), result.data());
  }
  const bool logarithm = reduction == Reduction::log_sum || reduction == Reduction::l2;
  visit_compute(logarithm ? Wide::real : wide_of(x.dtype()), [&]<typename C>() {
    auto result = reduce<C>(reduction, x, kept);
    // The 64-bit start value of an empty maximum or minimum is cut to the type's own limit.
    if (x.elements() == 0)
      for (C& value : result) value = limit_to(x.dtype(), value);
    store_elements(y, 0, 1, y.elements(), result.data());
  });
}

Values import_axes_attribute(OnnxImport& i) {
  const Row& row = *row_of(i.type);
  auto attrs = row.op->attrs->make();
  i.fill(*row.op->attrs, attrs.get(), true);
  if (i.in.size() != 1) i.fail("one input is expected");
  const auto axes = i.integers("axes");
  Values in = axes.empty() ? Values{i.in[0]} : Values{i.in[0], i.ints(axes)};
  return i.graph
      .add_node(*row.op, Attrs(row.op->attrs, std::move(attrs)), std::move(in), i.outputs,
                std::string(i.name))
      .outs;
}

/// Axes as an attribute, which takes constants only.
OnnxNode export_axes_attribute(const Node& node, int64_t opset) {
  const ReduceAttrs attrs = reduce_attrs(node);
  OnnxNode out{.type = {}, .in = {node.in[0]}};
  out.attributes.emplace_back("keepdims", int64_t{attrs.keepdims});
  if (!node.has(1)) {
    if (attrs.noop_with_empty_axes) no_form(node, "a reduction over no axes", opset, 18);
    return out;
  }
  const Tensor* axes = node.in[1]->constant();
  if (!axes || axes->elements() == 0)
    no_form(node, "a reduction over axes known only later", opset, 18);
  out.attributes.emplace_back("axes", axes->to_ints());
  return out;
}

}  // namespace

std::optional<Reduction> reduction_of(const Op& op) {
  for (const auto& row : kRows)
    if (row.op == &op) return row.reduction;
  return std::nullopt;
}

ReduceAttrs reduce_attrs(const Node& node) {
  const AttrsInfo& info = *node.attrs.info();
  const auto flag = [&](std::string_view name) {
    return std::get<int64_t>(info.find(name)->get(node.attrs.data())) != 0;
  };
  return {flag("keepdims"), flag("noop_with_empty_axes")};
}

Op make_reduce(Reduction reduction, const AttrsInfo* attrs) {
  const Row& row = kRows[static_cast<size_t>(reduction)];
  DAIS_CHECK(row.reduction == reduction);
  return {
      .name = row.name,
      .attrs = attrs,
      .infer = infer,
      .reference = reference,
      .gradient = gradient_reduce,
      .onnx = {{.type = row.onnx,
                .until = row.axes_input_since - 1,
                .import = import_axes_attribute,
                .export_as = export_axes_attribute},
               {.type = row.onnx, .since = row.axes_input_since}},
  };
}

namespace ops {
void define_reduce(OpRegistry& registry) {
  for (const auto& row : kRows) registry.add(*row.op);
  registry.add(SumTo::op);
  define_scans(registry);
}
}  // namespace ops
}  // namespace dais
