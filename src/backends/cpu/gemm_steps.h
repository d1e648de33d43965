#pragma once

#include "backends/cpu/gemm_block.h"
#include "backends/cpu/simd.h"

/// What follows a product. Only for _simd.cpp files.
namespace dais::DAIS_ISA {

/// `count` values side by side in each of `rows` rows: of C, from [row, column] on.
struct StepArea {
  float* values;
  int64_t stride;  ///< between rows of `values`
  int64_t row, rows, column, count;

  /// values = change(values, row counted from the first)
  template <typename Change>
  inline void each(Change change) const {
    float* at = values;
    if (count == kLanes)  // as what a masked store left has to reach the cache before a load
      for (int64_t r = 0; r < rows; ++r, at += stride) store(at, change(load(at), r));
    else
      for (int64_t r = 0; r < rows; ++r, at += stride)
        store_first(at, change(load_first(at, count), r), count);
  }
};

inline void run_step(const cpu::GemmStep& step, const StepArea& area) {
  using Kind = cpu::GemmStep::Kind;
  const Vf value = all(step.value), high = all(step.high);
  const auto operand = [&](int64_t r) {
    return load_first(step.operand + (area.row + r) * step.row + area.column, area.count);
  };
  switch (step.kind) {
    case Kind::scale: return area.each([&](Vf v, int64_t) { return mul(v, value); });
    case Kind::shift: return area.each([&](Vf v, int64_t) { return add(v, value); });
    case Kind::column:
    case Kind::tensor: return area.each([&](Vf v, int64_t r) { return add(v, operand(r)); });
    case Kind::scale_column:
    case Kind::scale_tensor: return area.each([&](Vf v, int64_t r) { return mul(v, operand(r)); });
    case Kind::relu: return area.each([&](Vf v, int64_t) { return max(all(0), v); });
    case Kind::clip: return area.each([&](Vf v, int64_t) { return min(high, max(value, v)); });
    case Kind::gelu: return area.each([&](Vf v, int64_t) { return gelu(v); });
    case Kind::gelu_tanh: return area.each([&](Vf v, int64_t) { return gelu_tanh(v); });
    case Kind::silu: return area.each([&](Vf v, int64_t) { return mul(v, sigmoid(v)); });
    case Kind::tanh: return area.each([&](Vf v, int64_t) { return tanh(v); });
    case Kind::sigmoid: return area.each([&](Vf v, int64_t) { return sigmoid(v); });
  }
}

/// All steps of a product on an area that lies in cache.
inline void run_steps(const cpu::GemmBlock& g, const StepArea& area) {
  for (int64_t s = 0; s < g.step_count; ++s) run_step(g.steps[s], area);
}

}  // namespace dais::DAIS_ISA
