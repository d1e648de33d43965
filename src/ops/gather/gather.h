#pragma once

#include "ir/op.h"

namespace dais {

/// (data, indices): whole slices along an axis: data's sizes with that of the axis replaced by the
/// shape of indices. Negative indices count from the end.
struct Gather {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &Gather::axis)};
  static const Op op;
};

/// (dy, indices, sizes: i64 list): zeros of the given sizes, to whose slices along the axis those
/// of dy are added, in order: the gradient of Gather.
struct GatherBackward {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &GatherBackward::axis)};
  static const Op op;
};

/// (data, indices): one element for each index; other axes keep the place of the index.
struct GatherElements {
  int64_t axis = 0;
  static constexpr auto fields = std::tuple{field("axis", &GatherElements::axis)};
  static const Op op;
};

/// (data, indices): the last axis of indices holds index tuples into data behind batch_dims shared
/// axes; what a tuple leaves open is taken whole.
struct GatherND {
  int64_t batch_dims = 0;
  static constexpr auto fields = std::tuple{field("batch_dims", &GatherND::batch_dims)};
  static const Op op;
};

/// (dy, indices, sizes: i64 list): the same for GatherND.
struct GatherNDBackward {
  int64_t batch_dims = 0;
  static constexpr auto fields = std::tuple{field("batch_dims", &GatherNDBackward::batch_dims)};
  static const Op op;
};

}  // namespace dais
