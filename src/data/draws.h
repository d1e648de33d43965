#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace dais::data {

/// What random numbers are for; each purpose has its own.
enum class Purpose : uint64_t { sample, order, buckets, mixup, split };

/// Random numbers of one sample in one epoch: the same whichever thread draws them, and on every
/// rank.
class Draws {
 public:
  Draws(Purpose purpose, uint64_t seed, int64_t epoch, int64_t index)
      // The epoch takes the upper half of the stream: epochs and indices below 2^32 never meet.
      : philox_(seed ^ static_cast<uint64_t>(purpose) * 0x9E3779B97F4A7C15,
                (static_cast<uint64_t>(epoch) << 32) ^ static_cast<uint64_t>(index)) {}

  double uniform() { return philox_.uniform(counter_++); }  ///< [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return philox_.normal(counter_++); }
  /// Adds numbers of mean 0 and deviation `sd` to `count` values: four of each block of random
  /// bits, where normal() takes one.
  void add_normal(float* values, int64_t count, float sd);
  int64_t below(int64_t count) {  ///< 0 … count-1
    return static_cast<int64_t>(uniform() * static_cast<double>(count));
  }
  /// Beta(alpha, alpha), in [0, 1].
  double beta(double alpha);
  bool coin() { return uniform() < 0.5; }

 private:
  double gamma(double shape);

  Philox philox_;
  uint64_t counter_ = 0;
};

/// Fisher and Yates.
template <typename T>
void shuffle(std::vector<T>& items, Draws& draws) {
  for (size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[static_cast<size_t>(draws.below(static_cast<int64_t>(left)))]);
}

}  // namespace dais::data
