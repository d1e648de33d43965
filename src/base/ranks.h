#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace dais {

/// The processes that work on one training, each a rank. All make the same calls in the same order.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Begins to replace the elements by their sums over all ranks; they must not be touched until
  /// `finish` has been called with the same span's data. Several may be under way.
  virtual void start_sum(std::span<float> elements) = 0;
  virtual void finish(const float* elements) = 0;
};

/// The group of this process: one rank alone unless another was set.
RankGroup& rank_group();
/// nullptr: one rank alone again. Set it before anything is compiled that ranks exchange.
void set_rank_group(std::unique_ptr<RankGroup> group);

}  // namespace dais
