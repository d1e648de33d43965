#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dais::data {

/// A sample that cannot be read.
struct Unreadable {
  int64_t index;
  std::string name, reason;
};

/// Samples of the same bytes.
struct Duplicates {
  std::vector<int64_t> indices;
  bool labels_differ = false;
};

/// The least, the most and the mean of a size.
struct Range {
  double low = 0, high = 0, mean = 0;
};

/// What a look at every sample tells.
struct Inspection {
  int64_t samples = 0, readable = 0;
  std::vector<int64_t> class_counts;    ///< samples, or boxes, or pixels of each class
  std::vector<Range> sizes;             ///< of each axis of the input
  std::vector<double> mean, deviation;  ///< of each channel (images, on the scale 0 to 1) or column
  Tensor mean_image;                    ///< f32 [C, H, W], 0 to 1; absent when sizes differ
  std::vector<Duplicates> duplicates;
  std::vector<Unreadable> unreadable;
  std::vector<Finding> findings;  ///< of opening, then of the look
};

struct InspectionOptions {
  bool duplicates = true;
  std::function<void(int64_t, int64_t)> progress;  ///< samples done, samples in all
};

/// Decodes every sample on the compute pool. Nothing is thrown for samples that are unreadable.
Inspection inspect(const Dataset& dataset, const InspectionOptions& options = {});

}  // namespace dais::data
