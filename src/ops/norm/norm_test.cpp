#include "ops/norm/norm.h"

#include "ops/run_op.h"

namespace dais {
namespace {

TEST(BatchNormalization, PerElementStatisticsOfOldVersions) {
  const Tensor x = Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor scale = Tensor::of<float>({1, 2}, {2, 10}),
               shift = Tensor::of<float>({1, 2}, {0, 1});
  const Tensor mean = Tensor::of<float>({1, 2}, {1, 2}), var = Tensor::of<float>({1, 2}, {1, 4});
  const auto y =
      run_import("", "BatchNormalization", 7, {{"spatial", int64_t{0}}, {"epsilon", 0.0f}},
                 {x, scale, shift, mean, var});
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({2, 1, 2}, {0, 1, 4, 11})));
}

TEST(BatchNormalization, OldVersionsTrainWhenMoreOutputsAreNamed) {
  const Tensor x = Tensor::of<float>({2, 1, 1}, {0, 2}), one = Tensor::of<float>({1}, {1});
  const Tensor zero = Tensor::of<float>({1}, {0});
  const auto y = run_import("", "BatchNormalization", 9, {{"epsilon", 0.0f}, {"momentum", 0.5f}},
                            {x, one, zero, one, zero}, 5);
  ASSERT_EQ(y.size(), 3u);
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({2, 1, 1}, {-1, 1})));
  EXPECT_EQ(y[1].data<float>()[0], 1);
  EXPECT_EQ(y[2].data<float>()[0], 0.5f);
}

TEST(GroupNormalization, Version18ScalesByGroup) {
  const Tensor x = test_tensor({2, 4, 3});
  const Tensor by_group =
      run_import("", "GroupNormalization", 18, {{"num_groups", int64_t{2}}},
                 {x, Tensor::of<float>({2}, {2, 3}), Tensor::of<float>({2}, {1, 5})}, 1)[0];
  const Tensor by_channel =
      run_op(GroupNormalization{.num_groups = 2},
             {x, Tensor::of<float>({4}, {2, 2, 3, 3}), Tensor::of<float>({4}, {1, 1, 5, 5})})[0];
  EXPECT_TRUE(by_group.identical(by_channel));
  EXPECT_THROW(run_op(GroupNormalization{.num_groups = 3}, {x, Tensor::of<float>({4}, {1, 1, 1, 1}),
                                                            Tensor::of<float>({4}, {0, 0, 0, 0})}),
               Error);
}

TEST(SkipLayerNormalization, GivesTheSumToo) {
  const Tensor x = test_tensor({1, 2, 4}), skip = test_tensor({1, 2, 4}, 2),
               scale = test_tensor({4}, 3);
  const Tensor shift = test_tensor({4}, 4), bias = test_tensor({4}, 5);
  const auto y = run_import("com.microsoft", "SkipLayerNormalization", 1, {{"epsilon", 1e-5f}},
                            {x, skip, scale, shift, bias}, 4);
  ASSERT_EQ(y.size(), 2u);
  const Tensor& sum = y[1];
  EXPECT_NEAR(sum.to_double(5), x.to_double(5) + skip.to_double(5) + bias.to_double(1), 1e-6);
  EXPECT_EQ(test_distance(y[0], run_op(LayerNormalization{}, {sum, scale, shift})[0]), 0);
}

TEST(EmbedLayerNormalization, SumsTablesAndCountsTokens) {
  const Tensor ids = Tensor::of<int32_t>({1, 2}, {1, 0}), words = test_tensor({3, 4});
  const Tensor positions = test_tensor({5, 4}, 2), one = Tensor::of<float>({4}, {1, 1, 1, 1});
  const Tensor zero = Tensor::of<float>({4}, {0, 0, 0, 0}),
               mask = Tensor::of<int32_t>({1, 2}, {1, 0});
  const auto y = run_import("com.microsoft", "EmbedLayerNormalization", 1, {},
                            {ids, {}, words, positions, {}, one, zero, mask}, 3);
  ASSERT_EQ(y.size(), 3u);
  EXPECT_TRUE(y[1].identical(Tensor::of<int32_t>({1}, {1})));
  EXPECT_NEAR(y[2].to_double(4), words.to_double(0) + positions.to_double(4), 1e-6);
}

}  // namespace
}  // namespace dais
