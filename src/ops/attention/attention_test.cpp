#include "ops/attention/attention.h"

#include <algorithm>

#include "ops/run_op.h"

namespace dais {
namespace {

Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::of<int32_t>({std::ssize(values)}, values);
}

TEST(GroupQueryAttention, PromptThenTokensIsTheSameAsAllAtOnce) {
  const GroupQueryAttention attrs{.num_heads = 4, .kv_num_heads = 2};
  const Tensor q = test_tensor({1, 5, 32}), k = test_tensor({1, 5, 16}, 2),
               v = test_tensor({1, 5, 16}, 3);
  const auto whole =
      run_op(Attention{.is_causal = true, .kv_num_heads = 2, .q_num_heads = 4}, {q, k, v}, 3);
  const auto part = [](const Tensor& x, int64_t begin, int64_t end) {
    const int64_t width = x.shape()[2];
    return Tensor::of<float>({1, end - begin, width},
                             x.data<float>().subspan(static_cast<size_t>(begin * width),
                                                     static_cast<size_t>((end - begin) * width)));
  };
  const auto prompt = run_op(
      attrs,
      {part(q, 0, 3), part(k, 0, 3), part(v, 0, 3), {}, {}, ints({2}), Tensor::scalar<int32_t>(3)},
      3);
  EXPECT_LT(test_distance(prompt[0], part(whole[0], 0, 3)), 1e-6);
  const auto rest = run_op(attrs,
                           {part(q, 3, 5), part(k, 3, 5), part(v, 3, 5), prompt[1], prompt[2],
                            ints({4}), Tensor::scalar<int32_t>(5)},
                           3);
  EXPECT_LT(test_distance(rest[0], part(whole[0], 3, 5)), 1e-6);
  EXPECT_EQ(test_distance(rest[1], whole[1]), 0);
  EXPECT_EQ(test_distance(rest[2], whole[2]), 0);
}

TEST(GroupQueryAttention, ExamplesOfDifferentLengthShareACacheOfGivenCapacity) {
  const GroupQueryAttention attrs{.num_heads = 1, .kv_num_heads = 1, .scale = 1};
  Tensor k(DType::f32, {2, 1, 4, 1}), v(DType::f32, {2, 1, 4, 1});
  std::fill(k.data<float>().begin(), k.data<float>().end(), 0.0f);
  for (size_t i = 0; i < 8; ++i) v.data<float>()[i] = static_cast<float>(i);
  const Tensor zero = Tensor::of<float>({2, 1, 1}, {0, 0}),
               fresh = Tensor::of<float>({2, 1, 1}, {10, 20});
  // Example 0 holds two tokens (0, 1), example 1 one (4); equal scores average the values.
  const auto out =
      run_op(attrs, {zero, zero, fresh, k, v, ints({2, 1}), Tensor::scalar<int32_t>(3)}, 3);
  EXPECT_NEAR(out[0].to_double(0), (0 + 1 + 10) / 3.0, 1e-6);
  EXPECT_NEAR(out[0].to_double(1), (4 + 20) / 2.0, 1e-6);
  EXPECT_EQ(out[2].shape(), (Shape{2, 1, 4, 1}));
  EXPECT_EQ(out[2].to_double(2), 10);
  EXPECT_EQ(out[2].to_double(5), 20);
  EXPECT_THROW(
      run_op(attrs, {zero, zero, fresh, k, v, ints({5, 1}), Tensor::scalar<int32_t>(3)}, 3), Error);
}

TEST(GroupQueryAttention, LocalWindowAndSink) {
  GroupQueryAttention attrs{.num_heads = 1, .kv_num_heads = 1, .scale = 1, .local_window_size = 1};
  const Tensor zero = Tensor::of<float>({1, 3, 1}, {0, 0, 0}),
               v = Tensor::of<float>({1, 3, 1}, {1, 2, 4});
  const std::vector<Tensor> inputs{zero, zero, v, {}, {}, ints({2}), Tensor::scalar<int32_t>(3)};
  const Tensor windowed = run_op(attrs, inputs, 3)[0];
  EXPECT_NEAR(windowed.to_double(2), 3, 1e-6);
  attrs.local_window_size = -1;
  attrs.smooth_softmax = true;
  EXPECT_NEAR(run_op(attrs, inputs, 3)[0].to_double(2), 7 / 4.0, 1e-6);
}

TEST(RotaryEmbedding, OneNumberIsThePositionOfTheFirstToken) {
  const Tensor x = test_tensor({1, 2, 8}), cos = test_tensor({6, 2}, 2),
               sin = test_tensor({6, 2}, 3);
  const std::vector<std::pair<std::string, AttrValue>> none;
  const auto by_offset = run_import("com.microsoft", "RotaryEmbedding", 1, none,
                                    {x, Tensor::of<int64_t>({1}, {3}), cos, sin});
  const auto by_list =
      run_op(RotaryEmbedding{.num_heads = 2}, {x, cos, sin, Tensor::of<int64_t>({1, 2}, {3, 4})});
  EXPECT_TRUE(by_offset[0].identical(by_list[0]));
  EXPECT_THROW(
      run_op(RotaryEmbedding{.num_heads = 2}, {x, cos, sin, Tensor::of<int64_t>({1, 2}, {3, 6})}),
      Error);
}

TEST(ContribAttention, MatchesAttentionOfProjectedInputs) {
  const Tensor x = test_tensor({2, 3, 4}), w = test_tensor({4, 12}, 2), b = test_tensor({12}, 3);
  const std::vector<std::pair<std::string, AttrValue>> attributes{{"num_heads", int64_t{2}},
                                                                  {"unidirectional", int64_t{1}}};
  const Tensor past = test_tensor({2, 2, 2, 1, 2}, 4);
  const auto y = run_import("com.microsoft", "Attention", 1, attributes, {x, w, b, {}, past}, 2);
  ASSERT_EQ(y[0].shape(), (Shape{2, 3, 4}));
  ASSERT_EQ(y[1].shape(), (Shape{2, 2, 2, 4, 2}));
  // The past comes first in the present.
  EXPECT_EQ(y[1].to_double(0), past.to_double(0));
  EXPECT_EQ(y[1].to_double(8), past.to_double(2));
}

TEST(MultiHeadAttention, PackedAndSeparateFormsAgree) {
  const Tensor packed = test_tensor({1, 3, 2, 3, 4});
  std::vector<Tensor> parts;
  for (int64_t part = 0; part < 3; ++part) {
    Tensor x(DType::f32, {1, 3, 8});
    for (int64_t i = 0; i < 24; ++i)
      x.data<float>()[static_cast<size_t>(i)] =
          packed.data<float>()[static_cast<size_t>((i / 4 * 3 + part) * 4 + i % 4)];
    parts.push_back(x);
  }
  const std::vector<std::pair<std::string, AttrValue>> attributes{{"num_heads", int64_t{2}}};
  const Tensor mask = Tensor::of<int32_t>({1, 3}, {1, 1, 0});
  const auto a =
      run_import("com.microsoft", "MultiHeadAttention", 1, attributes, {packed, {}, {}, {}, mask});
  const auto b = run_import("com.microsoft", "MultiHeadAttention", 1, attributes,
                            {parts[0], parts[1], parts[2], {}, mask});
  EXPECT_LT(test_distance(a[0], b[0]), 1e-6);
}

}  // namespace
}  // namespace dais
