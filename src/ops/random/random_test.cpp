#include "ops/random/random.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "ir/call.h"

namespace dais {
namespace {

template <typename Struct>
std::vector<Datum> run(Struct attrs, std::vector<Tensor> inputs, size_t outputs = 1) {
  Graph graph;
  Values values;
  std::vector<Datum> data(inputs.begin(), inputs.end());
  for (const auto& input : inputs) values.push_back(graph.add_input(Type::of(input), {}));
  graph.outputs = graph.add_node(std::move(attrs), values, outputs, "noise").outs;
  return evaluate(graph, data);
}

// Known answers of Philox4x32-10 from its authors' test vectors.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(Philox(0).block(0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, ~uint64_t{0}).block(~uint64_t{0}),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, ASeedGivesTheSameBits) {
  const RandomNormal seeded{.seed = 3.0f, .shape = {1000}};
  const Tensor a = run(seeded, {})[0].tensor;
  EXPECT_TRUE(a.identical(run(seeded, {})[0].tensor));
  const RandomNormal free{.seed = std::nullopt, .shape = {1000}};
  EXPECT_FALSE(run(free, {})[0].tensor.identical(run(free, {})[0].tensor));
}

TEST(Random, MomentsOfTheDistributions) {
  const Tensor x =
      run(RandomNormal{.mean = 2, .scale = 3, .seed = 1.0f, .shape = {100000}}, {})[0].tensor;
  double mean = 0, square = 0;
  for (const float value : x.data<float>()) {
    mean += value;
    square += double{value} * value;
  }
  mean /= 100000;
  EXPECT_NEAR(mean, 2, 0.05);
  EXPECT_NEAR(square / 100000 - mean * mean, 9, 0.2);
}

TEST(Random, DropoutScalesWhatItKeeps) {
  const Tensor x = Tensor::of<float>({4}, {1, 2, 3, 4});
  const auto out =
      run(Dropout{.seed = 5}, {x, Tensor::scalar<float>(0.5f), Tensor::scalar(true)}, 2);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(out[0].tensor.data<float>()[i],
              out[1].tensor.data<bool>()[i] ? 2 * x.data<float>()[i] : 0);
  EXPECT_TRUE(run(Dropout{}, {x})[0].tensor.identical(x));
  EXPECT_THROW(run(Dropout{}, {x, Tensor::scalar<float>(2), Tensor::scalar(true)}), Error);
}

TEST(Random, MultinomialFollowsTheChances) {
  const Tensor logs = Tensor::of<float>({1, 3}, {0, -HUGE_VALF, 0});
  const auto chosen = run(Multinomial{.sample_size = 1000, .seed = 2.0f}, {logs})[0].tensor;
  int counts[3] = {};
  for (const int32_t index : chosen.data<int32_t>()) ++counts[index];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 500, 80);
}

}  // namespace
}  // namespace dais
