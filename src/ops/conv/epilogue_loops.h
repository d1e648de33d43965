#pragma once

/// What own convolution loops do to a vector of results before it is stored.

#include <cstdint>

#include "ops/conv/loop_step.h"
#include "ops/lanes.h"

namespace dais::DAIS_ISA {

inline Lanes at_least(Lanes x, float low) { return larger(x, splat(low)); }
inline Lanes at_most(Lanes x, float high) { return smaller(x, splat(high)); }

/// `channel` is the first lane's channel, `element` its place in the result; `count` lanes count.
inline Lanes apply_step(const LoopStep& step, Lanes x, int64_t channel, int64_t element,
                        int64_t count) {
  const auto operand = [&](const float* from) {
    return count == kLanes ? load(from) : load_part(from, count);
  };
  switch (step.kind) {
    case LoopStep::Kind::relu: return at_least(x, 0);
    case LoopStep::Kind::leaky: return larger(x, Lanes{}) + splat(step.alpha) * smaller(x, Lanes{});
    case LoopStep::Kind::clip: return at_most(at_least(x, step.alpha), step.beta);
    case LoopStep::Kind::linear: return x * splat(step.alpha) + splat(step.beta);
    case LoopStep::Kind::hard_sigmoid:
      return at_most(at_least(x * splat(step.alpha) + splat(step.beta), 0), 1);
    case LoopStep::Kind::hard_swish:
      return x * at_most(at_least(x * splat(1.0F / 6) + splat(0.5F), 0), 1);
    case LoopStep::Kind::add_channel: return x + operand(step.values + channel);
    case LoopStep::Kind::mul_channel: return x * operand(step.values + channel);
    case LoopStep::Kind::prelu:
      return larger(x, Lanes{}) + operand(step.values + channel) * smaller(x, Lanes{});
    case LoopStep::Kind::add_tensor: return x + operand(step.values + element);
    case LoopStep::Kind::mul_tensor: return x * operand(step.values + element);
  }
  return x;
}

inline Lanes apply_steps(const LoopSteps& steps, Lanes x, int64_t channel, int64_t element,
                         int64_t count) {
  for (int64_t i = 0; i < steps.count; ++i)
    x = apply_step(steps.list[i], x, channel, element, count);
  return x;
}

}  // namespace dais::DAIS_ISA
