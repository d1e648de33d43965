#pragma once

#include "data/loader.h"
#include "train/metrics.h"

namespace dais::train {

/// The text of the best path through CTC scores [N, T, C]: the best token of each frame, repeats
/// merged, blanks (token 0) dropped. Token k is called classes[k].
std::string decode_transcript(const Tensor& scores, int64_t sample, int64_t frames,
                              const std::vector<std::string>& classes);
/// The text of target tokens.
std::string transcript_text(std::span<const int64_t> tokens,
                            const std::vector<std::string>& classes);

/// Boxes of one image from corners [N, A, 4] and logits [N, A, C]: those with a probability of at
/// least `threshold`, by falling score, without any that overlaps a better one of its class by
/// more than `iou`.
std::vector<Detection> decode_boxes(const Tensor& corners, const Tensor& scores, int64_t sample,
                                    double threshold, double iou);

/// What a detector's loss reads, made of the true boxes of a batch.
struct AnchorTargets {
  Tensor boxes;    ///< f32 [N, A, 4], parts of width and height
  Tensor classes;  ///< f32 [N, A, C]
  Tensor counts;   ///< f32 [N, A]
};
/// Each true box takes the anchor that overlaps it most and all that overlap it by half or more;
/// anchors [A, 4] are corners as parts of width and height, boxes of the batch pixels.
AnchorTargets match_anchors(const Tensor& anchors, const data::Batch& batch, int64_t classes);

}  // namespace dais::train
