#pragma once

#include <cstdint>

namespace dais {

/// One step of an epilogue as own loops read it.
struct LoopStep {
  enum class Kind : uint8_t {
    relu,
    leaky,  ///< alpha * x below zero
    clip,
    linear,
    hard_sigmoid,
    hard_swish,
    add_channel,
    mul_channel,
    prelu,
    add_tensor,  ///< an operand of the result's sizes and layout
    mul_tensor,
  };
  Kind kind = Kind::relu;
  float alpha = 0, beta = 0;
  const float* values = nullptr;
};

struct LoopSteps {
  const LoopStep* list = nullptr;
  int64_t count = 0;
};

}  // namespace dais
