#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dais {

/// One buffer of the arena: alive from the step that makes it to the last one that reads it.
struct Lifetime {
  int first = 0, last = 0;
  size_t size_bytes = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  ///< 64-byte aligned, one per lifetime
  size_t total_bytes = 0;
};

/// Packs buffers so that none that live at the same time overlap: largest first, each at the lowest
/// gap that fits. Deterministic.
MemoryPlan plan_memory(std::span<const Lifetime> buffers);

}  // namespace dais
