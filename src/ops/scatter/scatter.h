#pragma once

#include "ir/op.h"

namespace dais {

/// (data, indices, updates): data with one element replaced (or, by `reduction` add, mul, min, max,
/// combined) for each index. Without a reduction the last of repeated indices wins.
struct ScatterElements {
  int64_t axis = 0;
  std::string reduction = "none";
  static constexpr auto fields = std::tuple{field("axis", &ScatterElements::axis),
                                            field("reduction", &ScatterElements::reduction)};
  static const Op op;
};

/// (data, indices, updates): the last axis of indices holds index tuples into data; each names a
/// slice of data that an equal slice of updates replaces or is combined with.
struct ScatterND {
  std::string reduction = "none";
  static constexpr auto fields = std::tuple{field("reduction", &ScatterND::reduction)};
  static const Op op;
};

/// (cache, update, write_indices?): a cache with `update` written at each batch entry's own place
/// along the axis; "circular" starts again at the front, "linear" must fit.
struct TensorScatter {
  int64_t axis = -2;
  std::string mode = "linear";
  static constexpr auto fields =
      std::tuple{field("axis", &TensorScatter::axis), field("mode", &TensorScatter::mode)};
  static const Op op;
};

}  // namespace dais
