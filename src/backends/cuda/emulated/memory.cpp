#include "backends/cuda/emulated/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dais::cuda::emulated {
namespace {

constexpr size_t kAlignment = 256, kRedZone = 256, kRemembered = 256;
constexpr unsigned char kRedByte = 0xE7, kFreshByte = 0xFF;

size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string piece(const Region& region) {
  return "the allocation of " + std::to_string(region.bytes) + " bytes";
}

}  // namespace

Memory::~Memory() {
  for (const auto& [first, bytes] : live_) std::free(const_cast<unsigned char*>(first) - kRedZone);
}

void* Memory::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > limit_ - std::min(limit_, used_)) return nullptr;
  const size_t all = kRedZone + padded(bytes) + kRedZone;
  auto* block = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, all));
  if (block == nullptr) return nullptr;
  std::memset(block, kRedByte, all);
  std::memset(block + kRedZone, kFreshByte, bytes);
  live_.emplace(block + kRedZone, bytes);
  used_ += bytes;
  snapshot_.reset();
  return block + kRedZone;
}

bool Memory::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(static_cast<const unsigned char*>(memory));
  if (found == live_.end()) return false;
  const Region region{found->first, found->second};
  if (auto problem = damage(region)) found_at_free_.push_back(*problem);
  freed_.push_back(region);
  if (freed_.size() > kRemembered) freed_.pop_front();
  used_ -= region.bytes;
  live_.erase(found);
  snapshot_.reset();
  std::free(static_cast<unsigned char*>(memory) - kRedZone);
  return true;
}

bool Memory::holds(const void* first, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto* from = static_cast<const unsigned char*>(first);
  auto next = live_.upper_bound(from);
  if (next == live_.begin()) return false;
  --next;
  return Region{next->first, next->second}.contains(from, bytes);
}

size_t Memory::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::shared_ptr<const std::vector<Region>> Memory::regions() const {
  const std::lock_guard lock(mutex_);
  if (!snapshot_) {
    std::vector<Region> all;
    for (const auto& [first, bytes] : live_) all.push_back({first, bytes});
    snapshot_ = std::make_shared<const std::vector<Region>>(std::move(all));
  }
  return snapshot_;
}

std::string Memory::describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const unsigned char*>(address);
  for (auto region = freed_.rbegin(); region != freed_.rend(); ++region)
    if (region->contains(at, 1) && !live_.contains(region->first))
      return "inside " + piece(*region) + " that was freed";
  auto after = live_.upper_bound(at);
  if (after != live_.begin()) {
    const auto before = std::prev(after);
    const Region region{before->first, before->second};
    const auto beyond = static_cast<size_t>(at - region.first) - region.bytes;
    if (static_cast<size_t>(at - region.first) < region.bytes)
      return "across the end of " + piece(region);
    if (beyond < (1u << 20))
      return std::to_string(beyond) + " bytes past the end of " + piece(region);
  }
  if (after != live_.end() && after->first - at < (1 << 20))
    return std::to_string(after->first - at) + " bytes before " +
           piece({after->first, after->second});
  return "near no allocation";
}

std::optional<std::string> Memory::damage(const Region& region) const {
  const auto written = [](const unsigned char* first, size_t bytes) {
    return std::any_of(first, first + bytes, [](unsigned char byte) { return byte != kRedByte; });
  };
  if (written(region.first - kRedZone, kRedZone)) return "in front of " + piece(region);
  const size_t tail = padded(region.bytes) - region.bytes + kRedZone;
  if (written(region.first + region.bytes, tail)) return "behind " + piece(region);
  return std::nullopt;
}

std::vector<std::string> Memory::damaged() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found = std::exchange(found_at_free_, {});
  for (const auto& [first, bytes] : live_) {
    const Region region{first, bytes};
    const auto problem = damage(region);
    if (!problem) continue;
    found.push_back(*problem);
    std::memset(const_cast<unsigned char*>(first) - kRedZone, kRedByte, kRedZone);
    std::memset(const_cast<unsigned char*>(first) + bytes, kRedByte,
                padded(bytes) - bytes + kRedZone);
  }
  return found;
}

}  // namespace dais::cuda::emulated
