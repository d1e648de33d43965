#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/window.h"

namespace dais {

/// What one step of an epilogue does to each element of a convolution's result.
enum class StepKind : uint8_t {
  relu,          ///< x > 0 ? x : alpha * x
  clip,          ///< min(max(x, alpha), beta)
  linear,        ///< alpha * x + beta
  hard_sigmoid,  ///< min(max(alpha * x + beta, 0), 1)
  hard_swish,    ///< x * min(max(x / 6 + 0.5, 0), 1)
  sigmoid,
  swish,  ///< x * sigmoid(alpha * x)
  tanh,
  gelu,
  gelu_tanh,
  elu,
  softplus,
  mish,
  add,    ///< an operand is added...
  mul,    ///< ...or multiplied by
  prelu,  ///< x > 0 ? x : operand * x, one operand value per channel
};

struct EpilogueStep {
  StepKind kind = StepKind::relu;
  float alpha = 0, beta = 0;
  /// add, mul, prelu: a constant operand, one value per channel, not all the same.
  std::vector<float> channels = {};
  int operand = -1;    ///< add, mul: else the input of the node that holds the operand...
  bool whole = false;  ///< ...which has all of the result's sizes, not some of them 1
};

/// A convolution and the elementwise steps that follow it, found in a Conv or ConvTranspose node
/// or in the body of a Fused node that starts with one. Inputs are indices into the node's inputs,
/// -1 where the value is a constant of the body or left out.
struct ConvBody {
  const Node* conv = nullptr;
  int x = 0, w = -1, bias = -1;
  std::vector<EpilogueStep> steps = {};

  const Tensor* weights() const { return conv->in[1]->constant(); }
  const Tensor* bias_constant() const { return conv->has(2) ? conv->in[2]->constant() : nullptr; }
  bool has_bias() const { return conv->has(2); }
  const Type& out_type() const { return conv->outs[0]->type; }
};

/// The convolution of this node, or the reason why there is none that a kernel could run. All of
/// its tensors are f32.
struct FoundBody {
  std::optional<ConvBody> body;
  std::string reason;
};
FoundBody find_conv_body(const Node& node);

/// The window by the node's attributes and the shape of its weights.
Window conv_window(const Node& conv, const Shape& w);
int64_t conv_group(const Node& conv);

/// Whether the convolution reads and writes channels-last activations.
bool conv_channels_last(const Node& conv);

/// Whether each channel of a row-major convolution of two spatial axes has one window of its own.
bool is_depthwise_planes(const Node& node);

}  // namespace dais
