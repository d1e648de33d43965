// Chains of elementwise functions with what joins their rows, as whole graphs on the emulated
// device: one launch that reads each input once and writes each output once, with the CPU's
// results.
#include <gtest/gtest.h>

#include "api/compile.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "ops/wide.h"
#include "row_agreement.h"
#include "runtime/session.h"

namespace dais {
namespace {

struct Given {
  Graph graph;
  std::vector<Datum> data;

  Value* input(const Shape& shape, DType dtype = DType::f32) {
    const Tensor values = sample<float>(shape, 2, data.size() + 1);
    Tensor given(dtype, shape);
    store_wide(given, 0, values.data<float>().data(), shape.elements());
    data.emplace_back(given);
    return graph.add_input(Type::tensor(dtype, Dims(shape.begin(), shape.end())),
                           "x" + std::to_string(data.size()));
  }
  Value* axes(std::vector<int64_t> list) { return graph.add_constant(Tensor::ints(list)); }
};

struct Moved {
  std::vector<cuda::emulated::LaunchRecord> launches;
  size_t read = 0, written = 0;
};

/// Runs the graph on the CPU without passes and on the device, compares, and gives what the
/// device's launches moved.
Moved run_and_compare(const Given& given, const RowTolerance& tolerance = {1e-5, 1e-5}) {
  CompileOptions plain;
  plain.optimize = Optimize::off;
  Session reference(compile(given.graph.clone(), plain).plan);
  std::vector<Tensor> wanted;
  for (const Datum& result : reference.run(given.data)) wanted.push_back(result.tensor.clone());
  CompileOptions options;
  options.backend = test_backend();
  Session session(compile(given.graph.clone(), options).plan);
  EXPECT_TRUE(session.plan().warnings().empty()) << session.plan().warnings()[0];
  cuda::emulated::set_recording(true);
  cuda::emulated::take_launches();
  const auto& got = session.run(given.data);
  cuda::emulated::set_recording(false);
  for (const auto& finding : cuda::emulated::take_findings()) ADD_FAILURE() << finding.text();
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_close(got[i].tensor, wanted[i], tolerance, "output " + std::to_string(i));
  Moved out{cuda::emulated::take_launches()};
  for (const auto& launch : out.launches) {
    out.read += launch.traffic.reads.bytes;
    out.written += launch.traffic.writes.bytes;
  }
  return out;
}

void expect_once(const Moved& run, size_t read, size_t written) {
  if (on_hardware()) return;
  ASSERT_EQ(run.launches.size(), 1u);
  EXPECT_EQ(run.launches[0].kernel, "rows");
  EXPECT_EQ(run.read, read);
  EXPECT_EQ(run.written, written);
  EXPECT_EQ(run.launches[0].traffic.reads.efficiency(), 1.0);
}

TEST(FusedRows, SumBehindAChain) {
  Given given;
  Value *a = given.input({6, 512}), *b = given.input({6, 512});
  Value* product = given.graph.add(Mul{}, {given.graph.add(Relu{}, {a}), b});
  given.graph.outputs = {given.graph.add(ReduceSum{.keepdims = false}, {product, given.axes({1})})};
  expect_once(run_and_compare(given, {1e-5, 1e-4}), 2 * 6 * 512 * 4, 6 * 4);
}

TEST(FusedRows, SoftmaxBetweenScaleAndMask) {
  Given given;
  Value *x = given.input({2, 3, 5, 256}), *mask = given.input({2, 1, 1, 256});
  Value* scale = given.graph.add_constant(Tensor::of<float>({}, {0.125f}));
  Value* scores = given.graph.add(Add{}, {given.graph.add(Mul{}, {x, scale}), mask});
  Value* y = given.graph.add(Softmax{.axis = -1}, {scores});
  given.graph.outputs = {given.graph.add(Mul{}, {y, y})};
  // The mask is read again for each row that it serves.
  expect_once(run_and_compare(given), 2 * 30 * 256 * 4, 30 * 256 * 4);
}

TEST(FusedRows, NormBetweenResidualAndActivation) {
  Given given;
  Value *x = given.input({9, 768}), *residual = given.input({9, 768});
  Value *scale = given.input({768}), *bias = given.input({768});
  Value* sum = given.graph.add(Add{}, {x, residual});
  Value* y = given.graph.add(LayerNormalization{.axis = -1}, {sum, scale, bias});
  given.graph.outputs = {given.graph.add(Gelu{}, {y}), sum};
  expect_once(run_and_compare(given), 4 * 9 * 768 * 4, 2 * 9 * 768 * 4);
}

/// Two joins, one of the other's result: the variance by hand; what stands once for each row too.
TEST(FusedRows, StatisticsByHand) {
  Given given;
  Value* x = given.input({4, 1000});
  Graph& graph = given.graph;
  Value* mean = graph.add(ReduceMean{}, {x, given.axes({-1})});
  Value* centred = graph.add(Sub{}, {x, mean});
  Value* variance =
      graph.add(ReduceMean{}, {graph.add(Mul{}, {centred, centred}), given.axes({1})});
  Value* deviation = graph.add(Sqrt{}, {variance});
  graph.outputs = {graph.add(Div{}, {centred, deviation}), deviation};
  expect_once(run_and_compare(given), 4 * 1000 * 4, 4 * 1000 * 4 + 4 * 4);
}

TEST(FusedRows, SeveralAxesAndTypes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Given given;
    Value *x = given.input({3, 4, 16, 32}, dtype), *scale = given.input({4, 1, 1}, dtype);
    Value* y = given.graph.add(Mul{}, {x, scale});
    given.graph.outputs = {given.graph.add(ReduceMax{}, {y, given.axes({2, 3})}),
                           given.graph.add(Abs{}, {y})};
    const double close = dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 2e-3 : 1.6e-2;
    const size_t bytes = dtype_size(dtype), full = 12 * 512 * bytes;
    const Moved run = run_and_compare(given, {close, close});
    if (on_hardware()) continue;
    ASSERT_EQ(run.launches.size(), 1u);
    EXPECT_EQ(run.written, full + 12 * bytes);
  }
}

TEST(FusedRows, OddSizesAndLongRows) {
  for (const int64_t size : {1, 3, 33, 257, 2049, 8192}) {
    Given given;
    Value* x = given.input({3, size});
    Value* y = given.graph.add(LogSoftmax{.axis = -1}, {given.graph.add(Neg{}, {x})});
    given.graph.outputs = {given.graph.add(Exp{}, {y}),
                           given.graph.add(RMSNormalization{}, {y, given.input({size})})};
    const Moved run = run_and_compare(given, {2e-5, 2e-5});
    EXPECT_TRUE(on_hardware() || run.launches.size() == 1) << size;
  }
}

/// What is too long for registers is left to the kernels of the single nodes.
TEST(FusedRows, RowsTooLongStayApart) {
  Given given;
  Value* x = given.input({2, 9000});
  given.graph.outputs = {given.graph.add(Softmax{.axis = -1}, {given.graph.add(Neg{}, {x})})};
  const Moved run = run_and_compare(given);
  EXPECT_TRUE(on_hardware() || run.launches.size() == 2);
}

/// The counters tell a kernel that reads its input twice from one that reads it once.
TEST(FusedRows, UnfusedChainsReadTwice) {
  Given given;
  Value* x = given.input({6, 512});
  Value* y = given.graph.add(Relu{}, {x});
  given.graph.outputs = {given.graph.add(ReduceSum{}, {y, given.axes({0})})};  // not along rows
  const Moved run = run_and_compare(given, {1e-5, 1e-4});
  EXPECT_TRUE(on_hardware() || run.read == 2 * 6 * 512 * 4);
}

}  // namespace
}  // namespace dais
