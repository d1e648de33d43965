#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/loader.h"

namespace dais::data {

/// The samples of one epoch in the order in which they are dealt out, over all ranks.
using EpochOrder = std::shared_ptr<const std::vector<uint32_t>>;

/// A place between two global batches. `order_batch` is the global batch that the epoch's order was
/// made for: buckets depend on it, and an epoch is finished in the order it began.
struct Place {
  int64_t epoch = 0, taken = 0, order_batch = 0;
};

/// One step: which samples this rank gets, and where the next step begins.
struct StepPlan {
  std::vector<int64_t> indices;
  int64_t epoch = 0, step = 0, global_size = 0;
  bool last_of_epoch = false;
  Place next;
};

/// Deals samples out: a pure function of dataset, options and place. One thread at a time.
class Dealer {
 public:
  /// Throws `invalid_argument` when an epoch has no step.
  Dealer(const Dataset& dataset, const LoaderOptions& options);

  int64_t global_batch() const { return options_.batch * options_.ranks; }
  int64_t steps_per_epoch() const;
  Place start_of(int64_t epoch) const { return {epoch, 0, global_batch()}; }
  StepPlan plan(const Place& from);

 private:
  EpochOrder order_of(const Place& place);
  void sort_buckets(std::vector<uint32_t>& order, const Place& place) const;
  Place after(const Place& place, int64_t size) const;

  const Dataset& dataset_;
  const LoaderOptions& options_;
  int64_t samples_;
  Place order_place_{-1, 0, 0};
  EpochOrder order_;
};

}  // namespace dais::data
