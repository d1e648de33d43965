#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dais::cuda::emulated {

/// A piece of memory that kernels may touch.
struct Region {
  const unsigned char* first = nullptr;
  size_t bytes = 0;
  bool contains(const unsigned char* from, size_t count) const {
    return from >= first && count <= bytes && static_cast<size_t>(from - first) <= bytes - count;
  }
};

/// The device's memory: pieces of the host's, each between two red zones of a known pattern, filled
/// with a pattern that is NaN in every floating-point format. Any thread.
class Memory {
 public:
  explicit Memory(size_t limit) : limit_(limit) {}
  ~Memory();

  /// Null: not that much is left. Aligned to 256 bytes, as the driver's memory is.
  void* allocate(size_t bytes);
  /// False: this is no allocation.
  bool free(void* memory);
  /// Whether [first, first + bytes) lies in one allocation.
  bool holds(const void* first, size_t bytes) const;

  size_t used() const;
  size_t limit() const { return limit_; }

  /// All allocations, sorted by address: those of now, whatever happens later.
  std::shared_ptr<const std::vector<Region>> regions() const;
  /// How an address relates to what is and was allocated, in words.
  std::string describe(const void* address) const;
  /// Allocations whose red zones were written: each is described once.
  std::vector<std::string> damaged();

 private:
  std::optional<std::string> damage(const Region& region) const;

  const size_t limit_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  std::map<const unsigned char*, size_t> live_;
  std::deque<Region> freed_;  ///< the latest
  std::vector<std::string> found_at_free_;
  mutable std::shared_ptr<const std::vector<Region>> snapshot_;
};

}  // namespace dais::cuda::emulated
