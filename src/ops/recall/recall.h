#pragma once

#include "ir/op.h"

namespace dais {

/// (x): x itself, for what is computed from it once more. Nodes that read it are not taken for
/// those that read x, so a value can be made again later instead of being kept.
struct Recall {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
