#include "jobs/persistent_map.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

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

// Values that own something, and keys with long stretches that no other key shares: nodes come in
// between and go again, in copies and in what they were made from.
TEST(JobsPersistentMap, ValuesThatOwnMemoryLiveAsLongAsACopyHoldsThem) {
  std::mt19937_64 random(9);
  PersistentMap<std::shared_ptr<int>> map;
  std::map<uint64_t, int> truth;
  std::vector<std::pair<PersistentMap<std::shared_ptr<int>>, std::map<uint64_t, int>>> kept;
  std::vector<std::weak_ptr<int>> made;
  for (int step = 0; step < 6000; ++step) {
    const uint64_t key = ((random() % 5) << 60) | ((random() % 3) << 33) | (random() % 9);
    if (random() % 2 == 0) {
      EXPECT_EQ(map.erase(key), truth.erase(key) == 1);
    } else {
      map.set(key, std::make_shared<int>(step));
      made.push_back(*map.find(key));
      truth[key] = step;
    }
    if (step % 50 == 0) kept.emplace_back(map, truth);
    if (step % 333 == 0) kept.erase(kept.begin(), kept.begin() + kept.size() / 2);
  }
  kept.emplace_back(map, truth);
  for (const auto& [copy, seen] : kept) {
    ASSERT_EQ(copy.size(), seen.size());
    auto at = seen.begin();
    copy.for_each([&](uint64_t key, const std::shared_ptr<int>& value) {
      EXPECT_EQ(key, at->first);
      EXPECT_EQ(*value, at->second);
      ++at;
    });
  }
  map = {};
  kept.clear();
  for (const auto& value : made) EXPECT_TRUE(value.expired());
}

TEST(JobsPersistentMap, ASetNeedsNoValues) {
  struct Nothing {};
  std::mt19937_64 random(10);
  PersistentMap<Nothing> set;
  std::set<uint64_t> truth;
  for (int step = 0; step < 5000; ++step) {
    const uint64_t key = ((random() % 4) << 44) | (random() % 150);
    if (random() % 2 == 0) {
      EXPECT_EQ(set.erase(key), truth.erase(key) == 1);
    } else {
      set.set(key, {});
      truth.insert(key);
    }
  }
  std::vector<uint64_t> keys;
  set.for_each([&keys](uint64_t key, const Nothing&) { keys.push_back(key); });
  EXPECT_EQ(keys, std::vector<uint64_t>(truth.begin(), truth.end()));
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
