#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dais::train {

/// Counts by true class (row) and predicted class (column), and what follows from them. Also counts
/// pixels of segmentations.
class Confusion {
 public:
  explicit Confusion(int64_t classes = 0);
  /// Both must lie in [0, classes).
  void add(int64_t truth, int64_t predicted, int64_t count = 1);

  int64_t classes() const { return classes_; }
  int64_t at(int64_t truth, int64_t predicted) const;
  int64_t total() const;
  double accuracy() const;
  double precision(int64_t label) const;  ///< right among those predicted; NaN when there are none
  double recall(int64_t label) const;     ///< right among those that are; NaN when there are none
  double iou(int64_t label) const;        ///< both / either; NaN when there are none
  double mean_iou() const;                ///< over classes that occur

 private:
  int64_t row(int64_t label) const;
  int64_t column(int64_t label) const;

  int64_t classes_;
  std::vector<int64_t> counts_;
};

/// Answers of a classifier, batch by batch.
class ClassScores {
 public:
  explicit ClassScores(int64_t classes, int64_t k = 5);
  /// One row of scores. Equal scores: the lower class wins, as in a stable sort.
  void add(std::span<const float> scores, int64_t truth);

  const Confusion& confusion() const { return confusion_; }
  double accuracy() const { return confusion_.accuracy(); }
  double top_k() const;  ///< part of rows whose true class is among the k best
  int64_t k() const { return k_; }

 private:
  Confusion confusion_;
  int64_t k_, within_ = 0;
};

/// Corners x0, y0, x1, y1.
using Box = std::array<float, 4>;
double box_iou(const Box& a, const Box& b);

struct Detection {
  Box box{};
  int64_t label = 0;
  float score = 0;
};
struct BoxTruth {
  Box box{};
  int64_t label = 0;
  bool ignored = false;  ///< matching it counts neither way ("difficult", "DontCare")
};

/// Average precision of detections over a set of images.
class DetectionScores {
 public:
  void add_image(std::vector<Detection> found, std::vector<BoxTruth> truth);
  /// Area under precision against recall, precision made non-increasing from the right (every
  /// point, as PASCAL VOC 2010 does). Detections take the best box of their class and image that
  /// nobody of higher score took. NaN when the class has no box.
  double average_precision(int64_t label, double iou) const;
  /// Mean over classes with boxes; 0 when there are none.
  double mean_average_precision(double iou) const;

 private:
  struct Image {
    std::vector<Detection> found;
    std::vector<BoxTruth> truth;
  };
  std::vector<Image> images_;
};

/// Least number of insertions, deletions and replacements that make one list the other.
int64_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b);

/// Errors of transcripts against references: edits / reference length, by word and by character.
class TranscriptScores {
 public:
  void add(const std::string& reference, const std::string& heard);
  double word_error_rate() const;
  double character_error_rate() const;

 private:
  int64_t word_edits_ = 0, words_ = 0, character_edits_ = 0, characters_ = 0;
};

/// Mean of a quantity over samples, weighted; exp of it is the perplexity of a mean log loss.
class Mean {
 public:
  void add(double value, double weight = 1);
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  double weight() const { return weight_; }

 private:
  double sum_ = 0, weight_ = 0;
};

}  // namespace dais::train
