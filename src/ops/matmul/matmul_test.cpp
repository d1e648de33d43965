#include "ops/matmul/matmul.h"

#include <algorithm>

#include "ops/run_op.h"

namespace dais {
namespace {

TEST(MatMul, VectorsBatchesAndEmptySizes) {
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3}), y = Tensor::of<float>({3}, {4, 5, 6});
  EXPECT_TRUE(run_op(MatMul{}, {x, y})[0].identical(Tensor::scalar(32.0f)));
  const Tensor batch = Tensor::of<float>({2, 1, 1}, {2, 3});
  const Tensor row = Tensor::of<float>({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_op(MatMul{}, {batch, Tensor::of<float>({1, 2}, {1, 10})})[0].data<float>()[3], 30);
  EXPECT_EQ(run_op(MatMul{}, {Tensor::of<float>({3, 1, 1}, {1, 1, 2}), row})[0].data<float>()[5],
            12);
  const Tensor none = run_op(MatMul{}, {Tensor(DType::f32, {2, 0}), Tensor(DType::f32, {0, 3})})[0];
  EXPECT_TRUE(none.identical(Tensor::of<float>({2, 3}, {0, 0, 0, 0, 0, 0})));
}

TEST(MatMul, IntegersWrapInTheirOwnWidth) {
  const Tensor big = Tensor::of<int32_t>({1, 1}, {1 << 30});
  EXPECT_TRUE(run_op(MatMul{}, {big, Tensor::of<int32_t>({1, 1}, {4})})[0].identical(
      Tensor::of<int32_t>({1, 1}, {0})));
}

TEST(MatMul, DepthsThatDifferAreAnError) {
  EXPECT_THROW(run_op(MatMul{}, {Tensor(DType::f32, {2, 3}), Tensor(DType::f32, {2, 3})}), Error);
}

TEST(Gemm, FirstVersionsBroadcastByAttribute) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4}), c = Tensor::of<float>({2}, {10, 20});
  const auto y =
      run_import("", "Gemm", 6, {{"broadcast", int64_t{1}}, {"transB", int64_t{1}}}, {a, a, c});
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({2, 2}, {15, 31, 21, 45})));
}

TEST(MatMulNBits, ZeroPointsScalesAndGroups) {
  // One column of 32 fours with scale 0.5: default zero point 8, then a packed one of 2.
  const MatMulNBits attrs{.depth = 32, .columns = 1, .bits = 4, .block_size = 16};
  Tensor a(DType::f32, {1, 32}), b(DType::u8, {1, 2, 8});
  std::fill(a.data<float>().begin(), a.data<float>().end(), 1.0f);
  std::fill(b.data<uint8_t>().begin(), b.data<uint8_t>().end(), uint8_t{0x44});
  const Tensor scales = Tensor::of<float>({2}, {0.5f, 1.0f});
  EXPECT_EQ(run_op(attrs, {a, b, scales})[0].data<float>()[0], -16 * 2 - 16 * 4);
  const Tensor zeros = Tensor::of<uint8_t>({1, 1}, {0x32});
  EXPECT_EQ(run_op(attrs, {a, b, scales, zeros})[0].data<float>()[0], 16 + 16);
  Tensor groups(DType::i32, {32});
  std::fill(groups.data<int32_t>().begin(), groups.data<int32_t>().end(), 1);
  EXPECT_EQ(run_op(attrs, {a, b, scales, zeros, groups})[0].data<float>()[0], 32);
  groups.data<int32_t>()[3] = 2;
  EXPECT_THROW(run_op(attrs, {a, b, scales, zeros, groups}), Error);
  EXPECT_THROW(run_op(attrs, {a, Tensor(DType::u8, {1, 2, 7}), scales}), Error);
}

TEST(MatMulIntegerToFloat, ReferenceAndDecompositionAgree) {
  const Tensor a = Tensor::of<uint8_t>({2, 2}, {1, 250, 3, 128});
  const Tensor b = Tensor::of<int8_t>({2, 2}, {-5, 6, 7, -128});
  const std::vector<Tensor> inputs{a,
                                   b,
                                   Tensor::scalar(0.5f),
                                   Tensor::of<float>({2}, {0.25f, 2}),
                                   Tensor::scalar<uint8_t>(128),
                                   Tensor::of<int8_t>({2}, {1, -1}),
                                   Tensor::of<float>({2}, {10, 20})};
  Graph graph;
  Values values;
  std::vector<Datum> data(inputs.begin(), inputs.end());
  for (const Tensor& input : inputs) values.push_back(graph.add_input(Type::of(input), {}));
  const Node& node = graph.add_node(MatMulIntegerToFloat{}, values);
  graph.outputs = {node.outs[0], MatMulIntegerToFloat::op.decompose(graph, node)[0]};
  const auto out = evaluate(graph, data);
  EXPECT_EQ(test_distance(out[0].tensor, out[1].tensor), 0);
  EXPECT_EQ(out[0].tensor.data<float>()[0], ((1 - 128) * -6 + (250 - 128) * 6) * 0.125f + 10);
}

TEST(FusedMatMul, TransposesBatchesAndScales) {
  const Tensor a = test_tensor({3, 2, 4}), b = test_tensor({2, 5, 3}, 2);
  // A's first axis holds rows: 3 rows of 2 batch entries; B is transposed.
  const auto y = run_import("com.microsoft", "FusedMatMul", 1,
                            {{"alpha", 2.0f},
                             {"transA", int64_t{1}},
                             {"transBatchA", int64_t{1}},
                             {"transB", int64_t{1}}},
                            {a, b})[0];
  ASSERT_EQ(y.shape(), (Shape{2, 4, 5}));
  double expected = 0;
  for (int64_t k = 0; k < 3; ++k)
    expected += a.to_double((k * 2 + 1) * 4 + 3) * b.to_double((1 * 5 + 2) * 3 + k);
  EXPECT_NEAR(y.to_double((1 * 4 + 3) * 5 + 2), 2 * expected, 1e-5);
}

}  // namespace
}  // namespace dais
