#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace dais {

MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> placed;  // by rising offset
  for (size_t index : order) {
    const Lifetime& buffer = buffers[index];
    const size_t size_bytes = (buffer.size_bytes + 63) / 64 * 64;
    size_t offset = 0;
    for (size_t other : placed) {
      const Lifetime& neighbour = buffers[other];
      if (neighbour.last < buffer.first || buffer.last < neighbour.first) continue;
      if (offset + size_bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + (neighbour.size_bytes + 63) / 64 * 64);
    }
    plan.offsets[index] = offset;
    plan.total_bytes = std::max(plan.total_bytes, offset + size_bytes);
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](size_t value, size_t other) { return value < plan.offsets[other]; });
    placed.insert(place, index);
  }
  return plan;
}

}  // namespace dais
