// The own products of f32 with elements rounded to TF32, where that is asked for.
#include <cmath>

#include "api/compile.h"
#include "api/device.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "row_agreement.h"
#include "runtime/session.h"

namespace dais {
namespace {

/// To 11 significant bits, halves away from zero.
Tensor to_tf32(const Tensor& from) {
  Tensor out(DType::f32, from.shape());
  for (int64_t i = 0; i < from.elements(); ++i) {
    int exponent = 0;
    const double mantissa = std::frexp(from.to_double(i), &exponent);
    out.storage<float>()[i] =
        static_cast<float>(std::ldexp(std::round(std::ldexp(mantissa, 11)), exponent - 11));
  }
  return out;
}

struct Precise {
  double apart = 0;    ///< from the same on rounded elements, the most of all
  double rounded = 0;  ///< from the same on the elements as they are
  std::string detail;  ///< of the product's step
};

/// Runs a graph of one product with that precision on the device.
Precise run_at(const Graph& graph, const std::vector<Tensor>& inputs, MatmulPrecision precision) {
  std::vector<Datum> given(inputs.begin(), inputs.end()), rounded;
  for (const Tensor& input : inputs) rounded.emplace_back(to_tf32(input));
  Session plain(compile(graph.clone()).plan);
  const Tensor exact = plain.run(given)[0].tensor.clone();
  const Tensor wanted = plain.run(rounded)[0].tensor.clone();
  CompileOptions options;
  options.backend =
      std::make_shared<cuda::CudaBackend>(test_backend()->device().shared_from_this(), precision);
  Session session(compile(graph.clone(), options).plan);
  const Tensor& got = session.run(given)[0].tensor;
  for (const auto& finding : cuda::emulated::take_findings()) ADD_FAILURE() << finding.text();
  Precise out;
  for (int64_t i = 0; i < got.elements(); ++i) {
    out.apart = std::max(out.apart, std::fabs(got.to_double(i) - wanted.to_double(i)));
    out.rounded = std::max(out.rounded, std::fabs(got.to_double(i) - exact.to_double(i)));
  }
  for (const Step& step : session.plan().steps())
    if (step.place == Place::device && step.kernel && step.node->op->name != "copy")
      out.detail += step.kernel->detail();
  return out;
}

void expect_tf32(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (test_backend()->device().info().arch < 80) GTEST_SKIP() << "needs compute capability 8.0";
  const Precise high = run_at(graph, inputs, MatmulPrecision::high);
  EXPECT_LT(high.apart, 2e-5);
  EXPECT_GT(high.rounded, 1e-4);
  EXPECT_NE(high.detail.find("rounded to TF32"), std::string::npos) << high.detail;
  const Precise highest = run_at(graph, inputs, MatmulPrecision::highest);
  EXPECT_LT(highest.rounded, 2e-5);
  EXPECT_EQ(highest.detail.find("TF32"), std::string::npos) << highest.detail;
}

Value* input(Graph& graph, const Shape& shape) {
  return graph.add_input(Type::tensor(DType::f32, Dims(shape.begin(), shape.end())), {});
}

/// Sizes with and without packs of eight, several tiles, batches.
TEST(Tf32Rows, Matrices) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{130, 40}, {40, 136}}, {{33, 17}, {17, 35}}, {{2, 64, 48}, {2, 48, 40}}}) {
    Graph graph;
    graph.outputs = {graph.add(MatMul{}, {input(graph, a), input(graph, b)})};
    expect_tf32(graph, {sample<float>(a, 1), sample<float>(b, 1, 2)});
  }
}

TEST(Tf32Rows, TurnedOperandsAndWhatFollows) {
  Graph graph;
  Value* product = graph.add(Gemm{.trans_a = true, .trans_b = true},
                             {input(graph, {40, 70}), input(graph, {50, 40})});
  graph.outputs = {graph.add(Relu{}, {graph.add(Add{}, {product, input(graph, {50})})})};
  expect_tf32(graph, {sample<float>({40, 70}, 1), sample<float>({50, 40}, 1, 2),
                      to_tf32(sample<float>({50}, 1, 3))});
}

TEST(Tf32Rows, Convolutions) {
  Graph graph;
  graph.outputs = {graph.add(Conv{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}},
                             {input(graph, {2, 6, 9, 8}), input(graph, {40, 6, 3, 3})})};
  expect_tf32(graph, {sample<float>({2, 6, 9, 8}, 1), sample<float>({40, 6, 3, 3}, 1, 2)});
}

/// Few rows or columns are not worth the rounding.
TEST(Tf32Rows, FewRowsStayExact) {
  Graph graph;
  graph.outputs = {graph.add(MatMul{}, {input(graph, {5, 40}), input(graph, {40, 60})})};
  EXPECT_LT(run_at(graph, {sample<float>({5, 40}, 1), sample<float>({40, 60}, 1, 2)},
                   MatmulPrecision::high)
                .rounded,
            2e-5);
}

}  // namespace
}  // namespace dais
