#pragma once

#include "data/loader.h"
#include "data/order.h"

namespace dais::data {

/// Makes batches of planned samples: begin(), then make_sample() for each from any thread, then
/// finish().
class BatchMaker {
 public:
  struct Work {
    StepPlan plan;
    std::vector<Sample> samples;
    Tensor images;  ///< written sample by sample where the input is images
  };

  BatchMaker(const Dataset& dataset, const LoaderOptions& options);

  Work begin(StepPlan plan) const;
  void make_sample(Work& work, int64_t place) const;
  Batch finish(Work work) const;

 private:
  void collate_input(Work& work, Batch& batch) const;
  void collate_target(Work& work, Batch& batch) const;
  void collate_boxes(Work& work, Batch& batch) const;
  void standardise(Tensor& rows) const;
  void mix(Batch& batch) const;

  const Dataset& dataset_;
  const LoaderOptions& options_;
  Shape image_;  ///< [H, W, C] after augmentation
  ImageWriter writer_;
  bool training_;
};

size_t bytes_of(const Batch& batch);

}  // namespace dais::data
