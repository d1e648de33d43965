#pragma once

#include "ir/op.h"

namespace dais {

/// Several nodes that one kernel runs without writing what lies between them: region 0 holds them,
/// its inputs are the node's inputs. Made by target passes where a row takes the body as a whole
/// (a convolution with what follows it, a chain of elementwise functions); `decompose` gives the
/// body back.
struct Fused {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
