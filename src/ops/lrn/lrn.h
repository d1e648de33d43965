#pragma once

#include "ir/op.h"

namespace dais {

/// x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta. X is
/// [N, C, space...], with channels_last [N, space..., C].
struct LRN {
  float alpha = 1e-4f;
  float beta = 0.75f;
  float bias = 1;
  int64_t size = 1;
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("alpha", &LRN::alpha), field("beta", &LRN::beta), field("bias", &LRN::bias),
                 field("size", &LRN::size), field("channels_last", &LRN::channels_last)};
  static const Op op;
};

}  // namespace dais
