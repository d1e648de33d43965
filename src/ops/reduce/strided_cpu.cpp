// Reductions that the folds of neighbouring f32 axes leave: integers, products, and axes that lie
// apart. One pass over the data in order, on one thread, into wide totals.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/rows_cpu.h"
#include "ops/strided.h"

namespace dais {
namespace {

template <typename T>
using WideOf = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

/// Integers wrap; NaN wins in max and min.
template <Reduction reduction, typename W>
W joined(W total, W x) {
  using U = std::conditional_t<std::is_same_v<W, double>, double, uint64_t>;
  const U a = static_cast<U>(total), b = static_cast<U>(x);
  switch (reduction) {
    case Reduction::prod: return static_cast<W>(a * b);
    case Reduction::max: return total != total || total > x ? total : x;
    case Reduction::min: return total != total || total < x ? total : x;
    case Reduction::l1: return static_cast<W>(x < W{0} ? a - b : a + b);
    case Reduction::l2:
    case Reduction::sum_square: return static_cast<W>(a + b * b);
    default: return static_cast<W>(a + b);
  }
}

template <Reduction reduction, typename T>
WideOf<T> start() {
  using Limits = std::numeric_limits<T>;
  if (reduction == Reduction::prod) return 1;
  if (reduction == Reduction::max)
    return static_cast<WideOf<T>>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  if (reduction == Reduction::min)
    return static_cast<WideOf<T>>(Limits::has_infinity ? Limits::infinity() : Limits::max());
  return 0;
}

template <Reduction reduction, typename W>
W finished(W total, int64_t count) {
  if constexpr (std::is_same_v<W, double>) {
    if (reduction == Reduction::mean) return total / static_cast<double>(count);
    if (reduction == Reduction::l2) return std::sqrt(total);
    if (reduction == Reduction::log_sum) return std::log(total);
  }
  return total;
}

template <Reduction reduction, typename T>
class BoundStrided : public BoundKernel {
 public:
  using W = WideOf<T>;

  BoundStrided(const Shape& x, const Shape& kept)
      : loop_(StridedLoop<2>::broadcast(x, {&x, &kept})),
        results_(kept.elements()),
        count_(results_ == 0 ? 0 : x.elements() / results_) {}

  size_t scratch_bytes() const override { return sizeof(W) * static_cast<size_t>(results_); }

  Fault run(const Arguments& arguments) noexcept override {
    const T* x = static_cast<const T*>(arguments.in[0]);
    W* totals = static_cast<W*>(arguments.scratch);
    std::fill_n(totals, results_, start<reduction, T>());
    const int64_t n = loop_.size(), from_step = loop_.step(0), step = loop_.step(1);
    loop_.rows([&](const std::array<int64_t, 2>& at) {
      const T* from = x + at[0];
      W* to = totals + at[1];
      if (step != 0) {
        for (int64_t i = 0; i < n; ++i)
          to[i * step] = joined<reduction>(to[i * step], static_cast<W>(from[i * from_step]));
        return;
      }
      // Independent chains, joined in a fixed order.
      constexpr int64_t kChains = 8;
      W chains[kChains];
      std::fill_n(chains, kChains, start<reduction, T>());
      for (int64_t i = 0; i < n; ++i)
        chains[i % kChains] =
            joined<reduction>(chains[i % kChains], static_cast<W>(from[i * from_step]));
      constexpr bool squares = reduction == Reduction::sum_square || reduction == Reduction::l2;
      constexpr Reduction join = squares || reduction == Reduction::l1 ? Reduction::sum : reduction;
      for (const W chain : chains) *to = joined<join>(*to, chain);
    });
    T* y = static_cast<T*>(arguments.out[0]);
    for (int64_t i = 0; i < results_; ++i)
      y[i] = static_cast<T>(finished<reduction>(totals[i], count_));
    return {};
  }

 private:
  StridedLoop<2> loop_;
  int64_t results_, count_;
};

template <Reduction reduction, typename T>
std::unique_ptr<BoundKernel> make(const Shape& x, const Shape& kept) {
  return std::make_unique<BoundStrided<reduction, T>>(x, kept);
}

using Make = std::unique_ptr<BoundKernel> (*)(const Shape&, const Shape&);

/// Reductions of every type; means and roots of f32 alone.
template <typename T>
Make maker(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return make<Reduction::sum, T>;
    case Reduction::max: return make<Reduction::max, T>;
    case Reduction::min: return make<Reduction::min, T>;
    case Reduction::prod: return make<Reduction::prod, T>;
    case Reduction::l1: return make<Reduction::l1, T>;
    case Reduction::sum_square: return make<Reduction::sum_square, T>;
    default: break;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (reduction == Reduction::mean) return make<Reduction::mean, T>;
    if (reduction == Reduction::l2) return make<Reduction::l2, T>;
    if (reduction == Reduction::log_sum) return make<Reduction::log_sum, T>;
  }
  return nullptr;
}

Make maker_of(const Node& node) {
  const Reduction reduction = *reduction_of(*node.op);
  switch (node.in[0]->type.dtype) {
    case DType::f32: return maker<float>(reduction);
    case DType::i32: return maker<int32_t>(reduction);
    case DType::i64: return maker<int64_t>(reduction);
    default: return nullptr;
  }
}

class StridedKernel : public Kernel {
 public:
  explicit StridedKernel(const Node& node) : node_(node), make_(maker_of(node)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    Shape kept = sizes.in[0];
    const auto axes = node_.has(1) ? node_.in[1]->constant()->to_ints() : std::vector<int64_t>{};
    for (const int64_t axis : axes) kept[normalize_axis(axis, kept.rank())] = 1;
    if (axes.empty())
      for (size_t axis = 0; axis < kept.rank(); ++axis) kept[axis] = 1;
    return make_(sizes.in[0], kept);
  }

 private:
  const Node& node_;
  Make make_;
};

Verdict accepts(const KernelQuery& query) {
  if (!maker_of(query.node)) return no("a rare reduction or element type");
  if (query.node.has(1) && !query.constant(1)) return no("the axes are known only when running");
  const bool none = !query.node.has(1) || query.constant(1)->elements() == 0;
  if (none && reduce_attrs(query.node).noop_with_empty_axes) return no("nothing is reduced");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<StridedKernel>(query.node);
}

}  // namespace

void register_strided_reductions(Kernels& kernels) {
  for (const Op* op :
       {&ReduceSum::op, &ReduceMean::op, &ReduceMax::op, &ReduceMin::op, &ReduceProd::op,
        &ReduceL1::op, &ReduceL2::op, &ReduceLogSum::op, &ReduceSumSquare::op})
    kernels.add({.name = "reduce/strided",
                 .op = op,
                 .accepts = accepts,
                 .prepare = prepare,
                 .priority = -10});
}

}  // namespace dais
