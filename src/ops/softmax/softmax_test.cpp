#include "ops/softmax/softmax.h"

#include "ops/run_op.h"

namespace dais {
namespace {

TEST(Softmax, OldVersionsFlattenFromTheAxis) {
  const Tensor x = Tensor::of<float>({1, 2, 2}, {0, 0, 0, 0});
  const auto y = run_import("", "Softmax", 11, {}, {x});
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({1, 2, 2}, {0.25f, 0.25f, 0.25f, 0.25f})));
  EXPECT_TRUE(run_import("", "Softmax", 13, {}, {x})[0].identical(
      Tensor::of<float>({1, 2, 2}, {0.5f, 0.5f, 0.5f, 0.5f})));
  const auto last = run_import("", "LogSoftmax", 1, {{"axis", int64_t{-1}}}, {x});
  EXPECT_NEAR(last[0].to_double(), -std::log(2.0), 1e-7);
}

TEST(Softmax, OldVersionsTakeSeveralOpenSizes) {
  Graph graph;
  const Dims shape{Dim::symbol("N"), Dim::symbol("L"), 2};
  Value* x = graph.add_input(Type::tensor(DType::f32, shape), "x");
  const Values out = TestImport(graph, "Softmax", 11, {x}, {}).run();
  ASSERT_TRUE(out[0]->type.shape);
  EXPECT_EQ(*out[0]->type.shape, shape);
}

}  // namespace
}  // namespace dais
