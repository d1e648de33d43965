#include "jobs/persistent_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace dais::jobs {
namespace {

template <typename Map>
void expect_same(const Map& map, const std::map<uint64_t, int>& truth) {
  ASSERT_EQ(map.size(), truth.size());
  auto at = truth.begin();
  map.for_each([&](uint64_t key, int value) {
    ASSERT_NE(at, truth.end());
    EXPECT_EQ(key, at->first);
    EXPECT_EQ(value, at->second);
    ++at;
  });
  EXPECT_EQ(at, truth.end());
}

void expect_same_neighbours(const PersistentMap<int>& map, const std::map<uint64_t, int>& truth,
                            uint64_t key) {
  auto above = truth.lower_bound(key);
  const auto found = map.lower_bound(key);
  ASSERT_EQ(found.has_value(), above != truth.end());
  if (found) {
    EXPECT_EQ(found->first, above->first);
  }
  auto below = truth.upper_bound(key);
  const auto last = map.upper_entry(key);
  ASSERT_EQ(last.has_value(), below != truth.begin());
  if (last) {
    EXPECT_EQ(last->first, std::prev(below)->first);
  }
}

TEST(JobsPersistentMap, EqualsAStandardMapUnderRandomChanges) {
  std::mt19937_64 random(7);
  for (int spread : {8, 16, 40, 64}) {
    PersistentMap<int> map;
    std::map<uint64_t, int> truth;
    for (int step = 0; step < 4000; ++step) {
      const uint64_t key = random() >> (64 - spread);
      if (random() % 3 == 0) {
        EXPECT_EQ(map.erase(key), truth.erase(key) == 1);
      } else {
        map.set(key, step);
        truth[key] = step;
      }
      expect_same_neighbours(map, truth, random() >> (64 - spread));
      if (step % 500 == 0) expect_same(map, truth);
    }
    expect_same(map, truth);
  }
}

TEST(JobsPersistentMap, CopiesKeepWhatTheySaw) {
  std::mt19937_64 random(8);
  PersistentMap<int> map;
  std::map<uint64_t, int> truth;
  std::vector<std::pair<PersistentMap<int>, std::map<uint64_t, int>>> kept;
  for (int step = 0; step < 3000; ++step) {
    const uint64_t key = random() % 700;
    if (truth.contains(key) && step % 2 == 0) {
      map.edit(key) = -step;
      truth[key] = -step;
    } else if (step % 5 == 0) {
      map.erase(key);
      truth.erase(key);
    } else {
      map.set(key, step);
      truth[key] = step;
    }
    if (step % 100 == 0) kept.emplace_back(map, truth);
  }
  for (const auto& [copy, seen] : kept) expect_same(copy, seen);
}

TEST(JobsPersistentMap, TakesTheLargestKeys) {
  PersistentMap<int> map;
  EXPECT_FALSE(map.first());
  EXPECT_FALSE(map.last());
  map.set(~uint64_t{0}, 1);
  map.set(0, 2);
  EXPECT_EQ(map.first()->first, 0u);
  EXPECT_EQ(map.last()->first, ~uint64_t{0});
  EXPECT_FALSE(map.after(~uint64_t{0}));
  EXPECT_FALSE(map.before(0));
  EXPECT_EQ(*map.find(0), 2);
  EXPECT_TRUE(map.erase(~uint64_t{0}));
  EXPECT_TRUE(map.erase(0));
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace dais::jobs
