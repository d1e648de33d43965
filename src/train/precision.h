#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace dais::train {

/// The element type of products. Weights, moments, norms, losses and updates are always f32.
enum class Precision : uint8_t {
  fp32,
  bf16,
  fp16,  ///< with a factor on the loss that keeps small gradients from vanishing
};
Precision precision_from_name(std::string_view name);
std::string_view precision_name(Precision precision);

/// Lets convolutions, matrix products, recurrent layers and attention of a training form read and
/// write the 16-bit type, with casts around them; what only moves, adds or bends elements between
/// them follows. f32 changes nothing. Of attention the products alone are lowered, as a training
/// needs it, or, `whole_attention`, all of it (its softmax is f32 inside kernels).
void lower_precision(Graph& graph, Precision precision, bool whole_attention = false);

/// Constants that fp16 cannot hold: those that lower_precision casts to it and that have finite
/// elements beyond its range.
std::vector<std::string> beyond_half(const Graph& graph);

/// The factor of fp16: halved when a gradient overflows, doubled after many updates without.
class LossScale {
 public:
  /// `held` keeps the state: f64 [3], the factor, the updates since it changed, and those that were
  /// left out.
  explicit LossScale(Tensor held) : held_(std::move(held)) {}
  static Tensor initial();
  double factor() const { return held_.data<double>()[0]; }
  int64_t skipped() const { return static_cast<int64_t>(held_.data<double>()[2]); }
  /// After an update; false when the factor has fallen so low that the gradient itself is bad.
  bool follow(bool finite);

 private:
  Tensor held_;
};

}  // namespace dais::train
