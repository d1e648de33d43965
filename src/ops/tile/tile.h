#pragma once

#include "ir/op.h"

namespace dais {

/// (data, repeats): the whole tensor repeated along each axis.
struct Tile {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
