// Reductions of f32 data over neighbouring axes: the data is seen as [outer, size, inner].
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"
#include "ops/reduce/rows_cpu.h"

namespace dais {
namespace {

constexpr int64_t kColumns = 256;
/// Elements that are worth waking another thread for.
constexpr int64_t kParallelElements = 32768;

struct Fold {
  FoldKind kind;
  bool mean = false, root = false, log = false;

  float finish(double total, int64_t size) const {
    if (mean) total /= static_cast<double>(size);
    if (root) total = std::sqrt(total);
    return static_cast<float>(log ? std::log(total) : total);
  }
};

std::optional<Fold> fold_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return Fold{FoldKind::sum};
    case Reduction::mean: return Fold{.kind = FoldKind::sum, .mean = true};
    case Reduction::max: return Fold{FoldKind::max};
    case Reduction::min: return Fold{FoldKind::min};
    case Reduction::l1: return Fold{FoldKind::sum_absolute};
    case Reduction::l2: return Fold{.kind = FoldKind::sum_square, .root = true};
    case Reduction::log_sum: return Fold{.kind = FoldKind::sum, .log = true};
    case Reduction::sum_square: return Fold{FoldKind::sum_square};
    default: return std::nullopt;
  }
}

struct Layout {
  int64_t outer = 1, size = 1, inner = 1;
};

class BoundReduce : public BoundKernel {
 public:
  BoundReduce(Fold fold, const Layout& layout, const ReduceLoops& loops)
      : fold_(fold), layout_(layout), loops_(loops) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<float*>(arguments.out[0]);
    const int64_t outer = layout_.outer, size = layout_.size, inner = layout_.inner;
    if (inner == 1) {
      parallel_for(outer, grain(size), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          y[i] = fold_.finish(loops_.along(fold_.kind, x + i * size, size), size);
      });
      return {};
    }
    const int64_t pieces = (inner + kColumns - 1) / kColumns;
    const int64_t each = size * std::min(inner, kColumns);
    parallel_for(outer * pieces, grain(each), [&](int64_t first, int64_t last) {
      double total[kColumns];
      for (int64_t unit = first; unit < last; ++unit) {
        const int64_t at = unit / pieces, column = unit % pieces * kColumns;
        const int64_t width = std::min(kColumns, inner - column);
        loops_.across(fold_.kind, x + at * size * inner + column, size, inner, width, total);
        for (int64_t i = 0; i < width; ++i)
          y[at * inner + column + i] = fold_.finish(total[i], size);
      }
    });
    return {};
  }

 private:
  static int64_t grain(int64_t elements) {
    return std::max<int64_t>(1, kParallelElements / std::max<int64_t>(1, elements));
  }

  Fold fold_;
  Layout layout_;
  const ReduceLoops& loops_;
};

class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(const KernelQuery& query)
      : node_(query.node), loops_(reduce_loops(query.isa)) {}

  /// Axes of size 1 do not matter; the others that are reduced must be neighbours.
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& shape = sizes.in[0];
    std::vector<bool> reduced(shape.rank(), !node_.has(1));
    if (node_.has(1)) {
      const auto axes = node_.in[1]->constant()->to_ints();
      if (axes.empty()) reduced.assign(shape.rank(), true);
      for (const int64_t axis : axes) reduced[normalize_axis(axis, shape.rank())] = true;
    }
    Layout layout;
    enum { before, inside, behind } place = before;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      if (reduced[axis]) {
        if (place == behind) return nullptr;
        place = inside;
        layout.size *= shape[axis];
      } else {
        if (place == inside) place = behind;
        (place == before ? layout.outer : layout.inner) *= shape[axis];
      }
    }
    return std::make_unique<BoundReduce>(*fold_of(*reduction_of(*node_.op)), layout, loops_);
  }

 private:
  const Node& node_;
  const ReduceLoops& loops_;
};

/// Whether reduced axes may lie apart, with one longer than 1 between them that stays.
bool apart(const KernelQuery& query) {
  const Type& x = query.in(0);
  if (!x.ranked() || !query.node.has(1)) return false;
  const size_t rank = x.shape->size();
  std::vector<bool> reduced(rank, false);
  for (const int64_t axis : query.constant(1)->to_ints())
    reduced[normalize_axis(axis, rank)] = true;
  bool inside = false, behind = false;
  for (size_t axis = 0; axis < rank; ++axis) {
    if ((*x.shape)[axis].is(1)) continue;
    if (reduced[axis] && behind) return true;
    inside |= reduced[axis];
    behind |= inside && !reduced[axis];
  }
  return false;
}

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32) return no("element type other than f32");
  if (!fold_of(*reduction_of(*query.node.op))) return no("a rare reduction");
  if (query.node.has(1) && !query.constant(1)) return no("the axes are known only when running");
  const bool none = !query.node.has(1) || query.constant(1)->elements() == 0;
  if (none && reduce_attrs(query.node).noop_with_empty_axes) return no("nothing is reduced");
  if (apart(query)) return no("the axes lie apart");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ReduceKernel>(query);
}

}  // namespace

namespace ops {
void register_reduce_cpu(Kernels& kernels) {
  for (const Op* op : {&ReduceSum::op, &ReduceMean::op, &ReduceMax::op, &ReduceMin::op,
                       &ReduceL1::op, &ReduceL2::op, &ReduceLogSum::op, &ReduceSumSquare::op})
    kernels.add({.name = "reduce/folds", .op = op, .accepts = accepts, .prepare = prepare});
  register_scans(kernels);
  register_strided_reductions(kernels);
}
}  // namespace ops
}  // namespace dais
