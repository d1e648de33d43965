// Ops that look along one axis: index of the extreme element, running sums and products.
#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elements.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_gradient.h"
#include "ops/strided.h"

namespace dais {
namespace {

template <typename Struct>
void infer_arg(Inference& c) {
  c.set(0, DType::i64);
  const Struct& attrs = c.attrs<Struct>();
  Dims shape = c.shape(0);
  const size_t axis = c.axis(attrs.axis, shape.size());
  if (attrs.keepdims)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  c.set(0, DType::i64, std::move(shape));
}

/// Position of the winner among `size` elements `step` apart. The first NaN beats everything.
template <typename C, typename Better>
int64_t winner(const C* values, int64_t size, int64_t step, bool last, Better better) {
  int64_t best = 0;
  for (int64_t k = 0; k < size; ++k) {
    const C value = values[k * step], top = values[best * step];
    if (value != value) return k;
    if (better(value, top) || (last && value == top)) best = k;
  }
  return best;
}

template <typename Struct, typename Better>
void arg_reference(Call& c, Better better) {
  const Struct& attrs = c.attrs<Struct>();
  const Tensor& x = c.in(0);
  const size_t axis = normalize_axis(attrs.axis, x.rank());
  const AxisSplit split = split_axis(x.shape(), axis);
  Shape shape;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
    if (i == axis && attrs.keepdims) shape.push_back(1);
  }
  Tensor& y = c.out(0, DType::i64, shape);
  if (y.elements() == 0) return;
  c.require(split.size > 0, "the axis is empty, so no element can be chosen");
  visit_compute(wide_of(x.dtype()), [&]<typename C>() {
    const auto values = widen<C>(x);
    int64_t* to = y.data<int64_t>().data();
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < split.inner; ++i)
        *to++ = winner(values.data() + o * split.size * split.inner + i, split.size, split.inner,
                       attrs.select_last_index, better);
  });
}

void reference_arg_max(Call& c) {
  arg_reference<ArgMax>(c, [](auto a, auto b) { return a > b; });
}
void reference_arg_min(Call& c) {
  arg_reference<ArgMin>(c, [](auto a, auto b) { return a < b; });
}

void infer_cumulative(Inference& c) {
  c.set(0, c.dtype(0));
  if (const auto axis = c.known_ints(1); axis && axis->size() == 1) c.axis((*axis)[0], c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

/// Runs along the axis in the wide type; the result of each step is the element's own.
template <typename Struct, typename Combine>
void cumulative_reference(Call& c, int start, Combine combine) {
  const Struct& attrs = c.attrs<Struct>();
  const Tensor& x = c.in(0);
  c.require(c.in(1).elements() == 1, "the axis must be one number");
  Tensor& y = c.out(0, x.shape());
  const AxisSplit split = split_axis(x.shape(), normalize_axis(c.in(1).to_ints()[0], x.rank()));
  visit_compute(wide_of(x.dtype()), [&]<typename C>() {
    auto values = widen<C>(x);
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < split.inner; ++i) {
        C* lane = values.data() + o * split.size * split.inner + i;
        C total = static_cast<C>(start);
        for (int64_t k = 0; k < split.size; ++k) {
          C& at = lane[(attrs.reverse ? split.size - 1 - k : k) * split.inner];
          const C next = combine(total, at);
          at = attrs.exclusive ? total : next;
          total = next;
        }
      }
    store_elements(y, 0, 1, y.elements(), values.data());
  });
}

/// Integer overflow wraps.
template <typename C, typename F>
C wrapped(C a, C b, F f) {
  if constexpr (std::is_same_v<C, double>)
    return f(a, b);
  else
    return static_cast<C>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

void reference_cum_sum(Call& c) {
  cumulative_reference<CumSum>(c, 0, [](auto total, auto x) {
    return wrapped(total, x, [](auto a, auto b) { return a + b; });
  });
}
void reference_cum_prod(Call& c) {
  cumulative_reference<CumProd>(c, 1, [](auto total, auto x) {
    return wrapped(total, x, [](auto a, auto b) { return a * b; });
  });
}

/// Each element's gradient is the product of those before it times the rest, which follows a
/// recursion from the end: rest(j) = dy(j) + x(j+1) rest(j+1), or for exclusive products
/// rest(j) = dy(j+1) + x(j+1) rest(j+1).
void reference_cum_prod_backward(Call& c) {
  const auto& attrs = c.attrs<CumProdBackward>();
  const Tensor &dy = c.in(0), &x = c.in(1);
  c.require(dy.shape() == x.shape(), "dy and x must have the same shape");
  const AxisSplit split = split_axis(x.shape(), normalize_axis(c.in(2).to_ints().at(0), x.rank()));
  const auto from = widen<double>(dy), values = widen<double>(x);
  std::vector<double> out(values.size());
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t i = 0; i < split.inner; ++i) {
      const auto at = [&](int64_t k) {
        const int64_t place = attrs.reverse ? split.size - 1 - k : k;
        return static_cast<size_t>((o * split.size + place) * split.inner + i);
      };
      double rest = 0;
      for (int64_t k = split.size; k-- > 0;) {
        const bool last = k + 1 == split.size;
        const double given = !attrs.exclusive ? from[at(k)] : last ? 0 : from[at(k + 1)];
        rest = given + (last ? 0 : values[at(k + 1)] * rest);
        out[at(k)] = rest;
      }
      double before = 1;
      for (int64_t k = 0; k < split.size; ++k) {
        out[at(k)] *= before;
        before *= values[at(k)];
      }
    }
  store_elements(c.out(0, x.shape()), 0, 1, x.elements(), out.data());
}

void infer_like_second(Inference& c) {
  c.set(0, c.dtype(1));
  c.set(0, c.dtype(1), c.shape(1));
}

}  // namespace

const Op ArgMax::op{
    .name = "arg_max",
    .attrs = &AttrsOf<ArgMax>::info,
    .infer = infer_arg<ArgMax>,
    .reference = reference_arg_max,
    .onnx = {{"ArgMax", 1}},
};
const Op ArgMin::op{
    .name = "arg_min",
    .attrs = &AttrsOf<ArgMin>::info,
    .infer = infer_arg<ArgMin>,
    .reference = reference_arg_min,
    .onnx = {{"ArgMin", 1}},
};
const Op CumSum::op{
    .name = "cum_sum",
    .attrs = &AttrsOf<CumSum>::info,
    .infer = infer_cumulative,
    .reference = reference_cum_sum,
    .gradient = gradient_cum_sum,
    .onnx = {{"CumSum", 11}},
};
const Op CumProd::op{
    .name = "cum_prod",
    .attrs = &AttrsOf<CumProd>::info,
    .infer = infer_cumulative,
    .reference = reference_cum_prod,
    .gradient = gradient_cum_prod,
    .onnx = {{"CumProd", 26}},
};

const Op CumProdBackward::op{
    .name = "cum_prod_backward",
    .attrs = &AttrsOf<CumProdBackward>::info,
    .infer = infer_like_second,
    .reference = reference_cum_prod_backward,
    .onnx = {{.type = "CumProdBackward", .domain = "dais"}},
};

void define_scans(OpRegistry& registry) {
  for (const Op* op : {&ArgMax::op, &ArgMin::op, &CumSum::op, &CumProd::op, &CumProdBackward::op})
    registry.add(*op);
}

}  // namespace dais
