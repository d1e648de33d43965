#include "base/ranks.h"

namespace dais {
namespace {

class Alone : public RankGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void start_sum(std::span<float>) override {}
  void finish(const float*) override {}
};

std::unique_ptr<RankGroup>& held() {
  // Kept at the end of the process: one that fails must not wait there for the others.
  static auto* group = new std::unique_ptr<RankGroup>();
  return *group;
}

}  // namespace

RankGroup& rank_group() {
  static Alone alone;
  return held() ? *held() : alone;
}

void set_rank_group(std::unique_ptr<RankGroup> group) { held() = std::move(group); }

}  // namespace dais
