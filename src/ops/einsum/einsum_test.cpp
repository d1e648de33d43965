#include "ops/einsum/einsum.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

Tensor run(const std::string& equation, const std::vector<Tensor>& inputs) {
  return run_onnx("Einsum", 12, inputs, {{"equation", equation}})[0];
}

TEST(Einsum, DiagonalsEllipsesAndThreeTerms) {
  const Tensor a = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(run("ii", {a}).identical(Tensor::of<double>({}, {5})));
  EXPECT_TRUE(run("ii->i", {a}).identical(Tensor::of<double>({2}, {1, 4})));
  EXPECT_TRUE(run("ba", {a}).identical(Tensor::of<double>({2, 2}, {1, 3, 2, 4})));
  EXPECT_TRUE(
      run("ij,jk,kl->il", {a, a, a}).identical(Tensor::of<double>({2, 2}, {37, 54, 81, 118})));
  const Tensor row = Tensor::of<double>({1, 2}, {10, 100});
  EXPECT_TRUE(run("...,...", {a, row}).identical(Tensor::of<double>({2, 2}, {10, 200, 30, 400})));
  EXPECT_TRUE(run("i...->...", {a}).identical(Tensor::of<double>({2}, {4, 6})));
}

TEST(Einsum, MalformedEquations) {
  const Tensor a(DType::f32, {2, 2});
  for (const char* equation : {"ijk", "ij,jk", "ij->ijj", "ij->k", "i.j", "i....j", "ij->i->j", ""})
    EXPECT_THROW(run(equation, {a}), Error) << equation;
  EXPECT_THROW(run("ij,jk", {a, Tensor(DType::f32, {3, 2})}), Error);
}

TEST(Einsum, EmptySums) {
  EXPECT_TRUE(run("ij,jk", {Tensor(DType::f32, {1, 0}), Tensor(DType::f32, {0, 1})})
                  .identical(Tensor::of<float>({1, 1}, {0})));
}

}  // namespace
}  // namespace dais
