#pragma once

#include "base/philox.h"
#include "ops/random/random.h"

namespace dais {

/// Which elements a SteppedDropout keeps: one word of Philox each, four to a block.
struct KeepRule {
  Philox random;
  uint64_t limit;  ///< words below are dropped
  float scale;

  KeepRule(const SteppedDropout& attrs, int64_t step)
      : random(static_cast<uint64_t>(attrs.seed),
               static_cast<uint64_t>(attrs.stream) << 40 ^ static_cast<uint64_t>(step)),
        limit(static_cast<uint64_t>(static_cast<double>(attrs.ratio) * 0x1p32)),
        scale(1 / (1 - attrs.ratio)) {}
};

}  // namespace dais
