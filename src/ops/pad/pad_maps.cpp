#include "ops/pad/pad_maps.h"

#include <algorithm>

namespace dais {
namespace {

int64_t wrapped(int64_t at, int64_t period) {
  const int64_t rest = at % period;
  return rest < 0 ? rest + period : rest;
}

/// Which kept element of `size` an index counted from the first kept one shows; -1: none.
int64_t source_index(const std::string& mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap") return wrapped(at, size);
  if (size == 1) return 0;
  const int64_t folded = wrapped(at, 2 * (size - 1));
  return folded < size ? folded : 2 * (size - 1) - folded;
}

}  // namespace

std::optional<std::vector<int64_t>> constant_pads(const Node& node, size_t rank) {
  const auto pads = node.in[1]->constant()->to_ints();
  std::vector<int64_t> axes, out(2 * rank, 0);
  if (node.has(3)) axes = node.in[3]->constant()->to_ints();
  if (!node.has(3))
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  if (pads.size() != 2 * axes.size()) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], rank);
    out[axis] = pads[i];
    out[rank + axis] = pads[axes.size() + i];
  }
  return out;
}

int64_t kept_elements(const Shape& from, std::span<const int64_t> pads, size_t axis) {
  return from[axis] - std::max<int64_t>(0, -pads[axis]) -
         std::max<int64_t>(0, -pads[from.rank() + axis]);
}

IndexMaps pad_maps(const std::string& mode, const Shape& from, const Shape& to,
                   std::span<const int64_t> pads) {
  IndexMaps maps(from.rank());
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    const int64_t before = pads[axis], kept = kept_elements(from, pads, axis);
    for (int64_t i = 0; i < to[axis]; ++i) {
      const int64_t at = source_index(mode, i - std::max<int64_t>(0, before), kept);
      maps[axis].push_back(at < 0 ? -1 : at + std::max<int64_t>(0, -before));
    }
  }
  return maps;
}

}  // namespace dais
