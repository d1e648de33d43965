#include "data/loader.h"

#include <algorithm>
#include <set>

#include "data/arrays.h"
#include "data/testing/files.h"

namespace dais::data {
namespace {

/// `count` images of 6 x 5 whose pixels tell their number; classes in turn.
DatasetPtr numbered(int64_t count, int64_t classes = 3) {
  ArraySource source;
  source.inputs = Tensor(DType::u8, {count, 6, 5});
  source.targets = Tensor(DType::i64, {count});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 30; ++k)
      source.inputs.storage<uint8_t>()[i * 30 + k] = static_cast<uint8_t>(i * 7 + k);
    source.targets.storage<int64_t>()[i] = i % classes;
  }
  return array_dataset(std::move(source), {}, {});
}

LoaderOptions batches_of(int64_t batch, int workers = 0) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = workers;
  options.seed = 17;
  return options;
}

Augment everything() {
  Augment augment;
  augment.flip_horizontal = augment.flip_vertical = true;
  augment.rotate_deg = 20;
  augment.scale_sd = 0.1;
  augment.pad = 1;
  augment.brightness = augment.contrast = 0.2;
  augment.value_sd = 0.1;
  augment.noise_sd = 2;
  augment.mixup = 0.3;
  return augment;
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.last_of_epoch, b.last_of_epoch);
  EXPECT_TRUE(a.input.identical(b.input));
  EXPECT_TRUE(a.target.identical(b.target));
}

TEST(DataLoader, EveryEpochHoldsEverySampleOnce) {
  LoaderOptions options = batches_of(4);
  options.last = LastBatch::keep;
  Loader loader(numbered(10), options);
  EXPECT_EQ(loader.steps_per_epoch(), 3);
  std::vector<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (int step = 0; step < 3; ++step) {
      const Batch batch = loader.next();
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.step, step);
      EXPECT_EQ(batch.last_of_epoch, step == 2);
      EXPECT_EQ(batch.size(), step == 2 ? 2 : 4);
      order.insert(order.end(), batch.indices.begin(), batch.indices.end());
    }
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 10U);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(DataLoader, ImagesAreNormalisedPlanes) {
  LoaderOptions options = batches_of(2);
  options.shuffle = false;
  options.normalise.mean = {0.5F};
  options.normalise.deviation = {0.25F};
  const Batch batch = Loader(numbered(2), options).next();
  EXPECT_EQ(batch.input.shape(), (Shape{2, 1, 6, 5}));
  EXPECT_NEAR(batch.input.to_double(30 + 4), ((7 + 4) / 255.0 - 0.5) / 0.25, 1e-6);
  EXPECT_EQ(batch.target.to_ints(), (std::vector<int64_t>{0, 1}));
}

TEST(DataLoaderThreads, ThreadsChangeNothing) {
  std::vector<Batch> expected;
  for (const int workers : {0, 1, 3}) {
    LoaderOptions options = batches_of(5, workers);
    options.augment = everything();
    options.last = LastBatch::keep;
    Loader loader(numbered(23), options);
    for (size_t i = 0; i < 12; ++i) {
      if (i % 3 == 1) loader.top_up();
      Batch batch = loader.next();
      if (workers == 0)
        expected.push_back(std::move(batch));
      else
        expect_same(expected[i], batch);
    }
    EXPECT_EQ(loader.times().batches, 12);
  }
}

TEST(DataLoaderThreads, APositionResumesExactly) {
  LoaderOptions options = batches_of(4, 2);
  options.augment = everything();
  Loader whole(numbered(21), options);
  for (int i = 0; i < 7; ++i) whole.next();
  const std::string position = whole.position();
  Loader resumed(numbered(21), options);
  resumed.next();
  resumed.seek(position);
  EXPECT_EQ(resumed.position(), position);
  for (int i = 0; i < 9; ++i) expect_same(whole.next(), resumed.next());
}

TEST(DataLoader, APositionOfOtherDataIsRefused) {
  Loader loader(numbered(21), batches_of(4));
  const std::string position = loader.position();
  Loader other(numbered(22), batches_of(4));
  expect_refused([&] { other.seek(position); }, "another dataset");
  LoaderOptions seeded = batches_of(4);
  seeded.seed = 3;
  Loader third(numbered(21), seeded);
  expect_refused([&] { third.seek(position); }, "seed 17");
  for (const char* text : {"", "{}", "[1]", "{\"version\": 1", "null"})
    EXPECT_THROW(loader.seek(text), Error) << text;
}

TEST(DataLoader, RanksTogetherSeeWhatOneRankSees) {
  LoaderOptions options = batches_of(6);
  options.last = LastBatch::keep;
  options.augment.flip_horizontal = true;
  Loader alone(numbered(20), options);
  options.batch = 3;
  options.ranks = 2;
  options.rank = 0;
  Loader first(numbered(20), options);
  options.rank = 1;
  Loader second(numbered(20), options);
  for (int i = 0; i < 9; ++i) {
    const Batch whole = alone.next(), a = first.next(), b = second.next();
    std::vector<int64_t> both = a.indices;
    both.insert(both.end(), b.indices.begin(), b.indices.end());
    EXPECT_EQ(whole.indices, both);
    EXPECT_EQ(whole.global_size, a.global_size);
    const auto size = static_cast<size_t>(a.input.elements());
    EXPECT_TRUE(std::equal(a.input.data<float>().begin(), a.input.data<float>().end(),
                           whole.input.data<float>().begin()));
    EXPECT_TRUE(std::equal(b.input.data<float>().begin(), b.input.data<float>().end(),
                           whole.input.data<float>().begin() + static_cast<int64_t>(size)));
    EXPECT_EQ(first.position(), second.position());
  }
}

TEST(DataLoader, AnEpochGoesOnUnderAnotherNumberOfRanks) {
  LoaderOptions options = batches_of(4);
  options.last = LastBatch::keep;
  options.ranks = 2;
  std::multiset<int64_t> seen;
  std::string position;
  for (const int rank : {0, 1}) {
    options.rank = rank;
    Loader loader(numbered(30), options);
    for (int i = 0; i < 2; ++i) {
      const Batch batch = loader.next();
      seen.insert(batch.indices.begin(), batch.indices.end());
    }
    position = loader.position();
  }
  options.ranks = 3;
  for (const int rank : {0, 1, 2}) {
    options.rank = rank;
    Loader loader(numbered(30), options);
    loader.seek(position);
    for (;;) {
      const Batch batch = loader.next();
      EXPECT_EQ(batch.epoch, 0);
      seen.insert(batch.indices.begin(), batch.indices.end());
      if (batch.last_of_epoch) break;
    }
  }
  EXPECT_EQ(seen.size(), 30U);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 30U);
}

TEST(DataLoader, MixupGivesSharesOfClasses) {
  LoaderOptions options = batches_of(8);
  options.augment.mixup = 1;
  const Batch batch = Loader(numbered(8), options).next();
  ASSERT_EQ(batch.target.shape(), (Shape{8, 3}));
  for (int64_t i = 0; i < 8; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < 3; ++c) sum += batch.target.to_double(i * 3 + c);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(DataLoader, ASampleThatFailsIsThrownWhereItIsNeeded) {
  ArraySource source;
  source.inputs = Tensor::of<float>({4, 1}, {0, 1, 2, 3});
  source.targets = Tensor::of<int64_t>({4}, {0, 1, 9, 1});
  Description about;
  about.class_count = 2;
  const auto dataset = array_dataset(std::move(source), about, {});
  ASSERT_EQ(dataset->description().findings.size(), 1U);
  EXPECT_EQ(dataset->description().findings[0].count, 1);
  for (const int workers : {0, 2}) {
    LoaderOptions options = batches_of(1, workers);
    options.shuffle = false;
    Loader loader(dataset, options);
    loader.next();
    loader.top_up();
    loader.next();
    for (int again = 0; again < 2; ++again)
      expect_refused([&] { loader.next(); }, "label 9 is outside 2 classes");
  }
}

TEST(DataLoader, TooFewSamplesAreRefused) {
  expect_refused([] { Loader(numbered(3), batches_of(4)); }, "do not fill one batch");
  LoaderOptions options = batches_of(4);
  options.last = LastBatch::keep;
  EXPECT_EQ(Loader(numbered(3), options).next().size(), 3);
}

TEST(DataLoader, CachedSamplesAreTheSame) {
  LoaderOptions options = batches_of(4);
  options.augment = everything();
  Loader plain(numbered(12), options), kept(cached(numbered(12), 200), options);
  for (int i = 0; i < 8; ++i) expect_same(plain.next(), kept.next());
}

TEST(DataLoader, StratifiedPartsKeepTheSharesOfClasses) {
  const auto dataset = numbered(100, 4);
  const double fractions[] = {0.2, 0.12};
  const auto parts = stratified_parts(*dataset, fractions, 5);
  ASSERT_EQ(parts.size(), 3U);
  std::set<int64_t> all;
  for (const auto& part : parts) all.insert(part.begin(), part.end());
  EXPECT_EQ(all.size(), 100U);
  std::vector<int> counts(4);
  for (const int64_t index : parts[1]) ++counts[static_cast<size_t>(dataset->label(index))];
  EXPECT_EQ(counts, (std::vector<int>{5, 5, 5, 5}));
  EXPECT_EQ(parts[2].size(), 12U);
  EXPECT_EQ(parts, stratified_parts(*dataset, fractions, 5));
  EXPECT_NE(parts, stratified_parts(*dataset, fractions, 6));
}

}  // namespace
}  // namespace dais::data
