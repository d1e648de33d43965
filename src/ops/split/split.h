#pragma once

#include "ir/op.h"

namespace dais {

/// (data, sizes?): cuts an axis into the given sizes or, without them, into num_outputs pieces
/// (0: as many as there are outputs) of equal size but for a smaller last one.
struct Split {
  int64_t axis = 0;
  int64_t num_outputs = 0;
  static constexpr auto fields =
      std::tuple{field("axis", &Split::axis), field("num_outputs", &Split::num_outputs)};
  static const Op op;
};

}  // namespace dais
