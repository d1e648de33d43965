#pragma once

#include "ir/op.h"

namespace dais {

enum class Reduction : uint8_t {
  sum,
  mean,
  max,
  min,
  prod,
  l1,
  l2,
  log_sum,
  log_sum_exp,
  sum_square
};

/// (data, axes?): reduces the given axes, or all when none are given (with `noop_with_empty_axes`:
/// none). Nothing to reduce gives the neutral value: 0, 1, the type's least or greatest, NaN for
/// the mean, minus infinity for logarithms. NaN wins in max and min.
template <Reduction reduction>
struct ReduceBy {
  bool keepdims = true;
  bool noop_with_empty_axes = false;
  static constexpr auto fields =
      std::tuple{field("keepdims", &ReduceBy::keepdims),
                 field("noop_with_empty_axes", &ReduceBy::noop_with_empty_axes)};
  static const Op op;
};
Op make_reduce(Reduction reduction, const AttrsInfo* attrs);
template <Reduction reduction>
const Op ReduceBy<reduction>::op = make_reduce(reduction, &AttrsOf<ReduceBy<reduction>>::info);

using ReduceSum = ReduceBy<Reduction::sum>;
using ReduceMean = ReduceBy<Reduction::mean>;
using ReduceMax = ReduceBy<Reduction::max>;
using ReduceMin = ReduceBy<Reduction::min>;
using ReduceProd = ReduceBy<Reduction::prod>;
using ReduceL1 = ReduceBy<Reduction::l1>;
using ReduceL2 = ReduceBy<Reduction::l2>;
using ReduceLogSum = ReduceBy<Reduction::log_sum>;
using ReduceLogSumExp = ReduceBy<Reduction::log_sum_exp>;
using ReduceSumSquare = ReduceBy<Reduction::sum_square>;

/// (x, sizes: i64 list): x summed so far that it has those sizes, to which 1s and leading axes were
/// broadcast: the gradient of broadcasting where sizes are known only while running.
struct SumTo {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// Which reduction an op performs; nothing for other ops.
std::optional<Reduction> reduction_of(const Op& op);
/// The attributes of any ReduceBy node.
struct ReduceAttrs {
  bool keepdims, noop_with_empty_axes;
};
ReduceAttrs reduce_attrs(const Node& node);

/// Index (i64) of the greatest or least element along an axis; the first, or the last, of equals.
struct ArgMax {
  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;
  static constexpr auto fields =
      std::tuple{field("axis", &ArgMax::axis), field("keepdims", &ArgMax::keepdims),
                 field("select_last_index", &ArgMax::select_last_index)};
  static const Op op;
};
struct ArgMin {
  int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;
  static constexpr auto fields =
      std::tuple{field("axis", &ArgMin::axis), field("keepdims", &ArgMin::keepdims),
                 field("select_last_index", &ArgMin::select_last_index)};
  static const Op op;
};

/// (x, axis): running sum or product; `exclusive` leaves each element itself out.
struct CumSum {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields =
      std::tuple{field("exclusive", &CumSum::exclusive), field("reverse", &CumSum::reverse)};
  static const Op op;
};
struct CumProd {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields =
      std::tuple{field("exclusive", &CumProd::exclusive), field("reverse", &CumProd::reverse)};
  static const Op op;
};

/// (dy, x, axis): the gradient of CumProd; zeros in x are no obstacle.
struct CumProdBackward {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields = std::tuple{field("exclusive", &CumProdBackward::exclusive),
                                            field("reverse", &CumProdBackward::reverse)};
  static const Op op;
};

}  // namespace dais
