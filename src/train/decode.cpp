#include "train/decode.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace dais::train {
namespace {

constexpr double kMatched = 0.5;

std::string name_of(int64_t token, const std::vector<std::string>& classes) {
  const auto at = static_cast<size_t>(token);
  return at < classes.size() ? classes[at] : "?";
}

Box box_at(std::span<const float> corners, size_t index) {
  return {corners[index * 4], corners[index * 4 + 1], corners[index * 4 + 2],
          corners[index * 4 + 3]};
}

/// Targets of one image, written at its place in the batch.
class Matcher {
 public:
  Matcher(std::span<const float> anchors, AnchorTargets& out, int64_t sample, int64_t classes)
      : anchors_(anchors), out_(out), count_(anchors.size() / 4), classes_(classes) {
    first_ = static_cast<size_t>(sample) * count_;
    best_.resize(count_, 0);
  }

  void add(const Box& box, int64_t label) {
    size_t nearest = 0;
    double largest = -1;
    for (size_t a = 0; a < count_; ++a) {
      const double overlap = box_iou(box_at(anchors_, a), box);
      if (overlap > largest) {
        largest = overlap;
        nearest = a;
      }
      if (overlap >= kMatched && overlap > best_[a]) take(a, box, label, overlap);
    }
    // Nobody else may take the anchor that is nearest.
    if (count_ > 0) take(nearest, box, label, 2);
  }

 private:
  void take(size_t anchor, const Box& box, int64_t label, double overlap) {
    if (best_[anchor] == 2 && overlap < 2) return;
    best_[anchor] = overlap;
    const size_t at = first_ + anchor;
    std::copy(box.begin(), box.end(),
              out_.boxes.data<float>().begin() + static_cast<std::ptrdiff_t>(at * 4));
    const auto scores = out_.classes.data<float>().subspan(at * static_cast<size_t>(classes_),
                                                           static_cast<size_t>(classes_));
    std::fill(scores.begin(), scores.end(), 0.0f);
    scores[static_cast<size_t>(label)] = 1;
    out_.counts.data<float>()[at] = 1;
  }

  std::span<const float> anchors_;
  AnchorTargets& out_;
  size_t count_, first_;
  int64_t classes_;
  std::vector<double> best_;  ///< overlap of each anchor with its box; 2: kept for good
};

Tensor zeros(const Shape& shape) {
  Tensor out(DType::f32, shape);
  std::fill(out.data<float>().begin(), out.data<float>().end(), 0.0f);
  return out;
}

}  // namespace

std::string decode_transcript(const Tensor& scores, int64_t sample, int64_t frames,
                              const std::vector<std::string>& classes) {
  const int64_t length = scores.shape()[1], width = scores.shape()[2];
  const auto all = scores.data<float>();
  std::vector<int64_t> tokens;
  int64_t before = 0;
  for (int64_t t = 0; t < std::min(frames, length); ++t) {
    const auto row =
        all.subspan(static_cast<size_t>((sample * length + t) * width), static_cast<size_t>(width));
    const int64_t best = std::max_element(row.begin(), row.end()) - row.begin();
    if (best != 0 && best != before) tokens.push_back(best);
    before = best;
  }
  return transcript_text(tokens, classes);
}

std::string transcript_text(std::span<const int64_t> tokens,
                            const std::vector<std::string>& classes) {
  std::string out;
  for (const int64_t token : tokens)
    if (token > 0) out += name_of(token, classes);
  return out;
}

std::vector<Detection> decode_boxes(const Tensor& corners, const Tensor& scores, int64_t sample,
                                    double threshold, double iou) {
  const int64_t anchors = scores.shape()[1], classes = scores.shape()[2];
  const auto logits = scores.data<float>();
  std::vector<Detection> found;
  for (int64_t a = 0; a < anchors; ++a)
    for (int64_t c = 0; c < classes; ++c) {
      const auto logit =
          static_cast<double>(logits[static_cast<size_t>((sample * anchors + a) * classes + c)]);
      const double score = 1 / (1 + std::exp(-logit));
      if (score < threshold) continue;
      found.push_back({box_at(corners.data<float>(), static_cast<size_t>(sample * anchors + a)), c,
                       static_cast<float>(score)});
    }
  std::stable_sort(found.begin(), found.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  std::vector<Detection> kept;
  for (const Detection& one : found) {
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Detection& better) {
      return better.label == one.label && box_iou(better.box, one.box) > iou;
    });
    if (!covered) kept.push_back(one);
  }
  return kept;
}

AnchorTargets match_anchors(const Tensor& anchors, const data::Batch& batch, int64_t classes) {
  const int64_t count = anchors.shape()[0], size = batch.size();
  const int64_t most = batch.classes.shape()[1];
  const auto height = static_cast<float>(batch.input.shape()[2]);
  const auto width = static_cast<float>(batch.input.shape()[3]);
  AnchorTargets out{zeros({size, count, 4}), zeros({size, count, classes}), zeros({size, count})};
  const auto labels = batch.classes.data<int64_t>();
  for (int64_t n = 0; n < size; ++n) {
    Matcher matcher(anchors.data<float>(), out, n, classes);
    for (int64_t m = 0; m < most; ++m) {
      const int64_t label = labels[static_cast<size_t>(n * most + m)];
      if (label < 0 || label >= classes) continue;
      Box box = box_at(batch.target.data<float>(), static_cast<size_t>(n * most + m));
      for (size_t k = 0; k < 4; ++k) box[k] /= k % 2 == 0 ? width : height;
      matcher.add(box, label);
    }
  }
  return out;
}

}  // namespace dais::train
