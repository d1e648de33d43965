#pragma once

#include "base/ranks.h"

namespace dais {

inline void start_mean(std::span<float> elements) {
  if (rank_group().size() > 1) rank_group().start_sum(elements);
}
inline void scale_sum(std::span<float> elements) {
  const int ranks = rank_group().size();
  if (ranks == 1) return;
  const float part = 1.0f / static_cast<float>(ranks);
  for (float& element : elements) element *= part;
}
inline void finish_mean(std::span<float> elements) {
  if (rank_group().size() > 1) rank_group().finish(elements.data());
  scale_sum(elements);
}

}  // namespace dais
