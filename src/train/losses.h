#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace dais::train {

enum class LossKind : uint8_t {
  cross_entropy,         ///< class scores against class numbers, or against shares of classes
  binary_cross_entropy,  ///< scores against 0 and 1, element by element
  mse,
  l1,
  huber,
  ctc,        ///< character scores in time against transcripts
  detection,  ///< focal loss of scores, smooth L1 loss of boxes
  next_token  ///< cross entropy at every place of a text
};
LossKind loss_from_name(std::string_view name);
std::string_view loss_name(LossKind kind);
const std::vector<std::string>& loss_names();

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;
  double label_smoothing = 0;
  std::vector<float> class_weights;  ///< empty: all 1
  int64_t ignore_index = -100;       ///< class number that does not count
  double delta = 1;                  ///< where huber and smooth L1 turn from square to line
  double focal_gamma = 2, focal_alpha = 0.25;
  double box_weight = 1;
  Tensor anchors;  ///< detection: f32 [A, 4], corners as parts of width and height
  int64_t box_classes = 0;
};

/// What a loss reads. Left-out parts are nullptr.
struct LossInputs {
  /// The network's outputs by position. Class scores are [N, C], [N, C, …] with the classes second,
  /// or for next_token [N, T, C]. ctc: [N, T, C]. detection: boxes [N, A, 4], scores [N, A, C].
  Values outputs;
  /// i64 [N] or [N, …] class numbers, or f32 like the scores. ctc: i64 [N, L]. detection: f32
  /// [N, A, 4], the box that each anchor is to give.
  Value* target = nullptr;
  Value* classes = nullptr;         ///< detection: f32 [N, A, C], 1 for the class of each anchor
  Value* counts = nullptr;          ///< detection: f32 [N, A], 1 for anchors that have a box
  Value* input_lengths = nullptr;   ///< ctc: i64 [N]
  Value* input = nullptr;           ///< ctc: the network's input, [N, T, F] or [N, 1, F, T]
  Value* target_lengths = nullptr;  ///< ctc: i64 [N]

  /// The member that a target tensor of that name goes to.
  Value*& by_name(std::string_view name);
};

/// Sets what a detection loss has to know of its network: anchors (its third output, which no input
/// changes) and the number of classes. Throws `invalid_argument` when the network is no detector.
void learn_anchors(const Graph& network, LossOptions& options);

/// Appends the nodes of a loss in PyTorch's formulas; gives an f32 scalar, the mean over what
/// counts. Throws `invalid_argument` when outputs and targets do not fit together.
Value* add_loss(Graph& graph, const LossOptions& options, const LossInputs& inputs);

}  // namespace dais::train
