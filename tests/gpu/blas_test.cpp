// The rows of cuBLASLt behind a library of the tests.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/compile.h"
#include "api/device.h"
#include "backends/cuda/backend.h"
#include "byte_samples.h"
#include "fake_blas.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/blas_cuda.h"
#include "ops/matmul/matmul.h"
#include "ops/quantize/quantize.h"
#include "runtime/row_test.h"
#include "runtime/session.h"
#include "stand_in.h"

namespace dais {
namespace {

using cuda::StandIn;

class LibraryProducts : public testing::Test {
 protected:
  void SetUp() override {
    StandIn::instance().reset();
    StandIn::instance().use_blas(true);
    cuda::set_fake_blas_empty(false);
    live_ = cuda::fake_blas_counts().live;
  }
  void TearDown() override {
    for (const auto& complaint : StandIn::instance().take_complaints()) ADD_FAILURE() << complaint;
    for (const auto& left : StandIn::instance().leftovers()) ADD_FAILURE() << "left: " << left;
    EXPECT_EQ(cuda::fake_blas_counts().live, live_) << "descriptions are left";
  }

  /// Compiles and runs a graph three times on the device and compares with the CPU. Gives how many
  /// products the library did in each run.
  static int expect_same(const Graph& graph, const std::vector<Datum>& inputs,
                         const RowTolerance& tolerance = {1e-5, 1e-5}) {
    Session plain(compile(graph.clone()).plan);
    const auto wanted = plain.run(inputs);
    CompileOptions options;
    options.backend =
        std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
    Session session(compile(graph.clone(), options).plan);
    const int before = cuda::fake_blas_counts().products;
    for (int i = 0; i < 3; ++i) {
      const auto& got = session.run(inputs);
      for (size_t k = 0; k < wanted.size(); ++k)
        expect_close(got[k].tensor, wanted[k].tensor, tolerance, "output " + std::to_string(k));
    }
    return (cuda::fake_blas_counts().products - before) / 3;
  }

  /// The same for a product of bytes with constant B; empty zero points are left out.
  template <typename A, typename B>
  static int expect_same_bytes(const Shape& a, const Shape& b, const Tensor& a_zero = {},
                               const Tensor& b_zero = {}) {
    Graph graph;
    const auto zero = [&](const Tensor& of) { return of ? graph.add_constant(of) : nullptr; };
    Value* x = input(graph, a, "x", dtype_of<A>);
    Value* w = graph.add_constant(bytes<B>(b, 2));
    graph.outputs = {graph.add(MatMulInteger{}, {x, w, zero(a_zero), zero(b_zero)})};
    return expect_same(graph, {bytes<A>(a)});
  }

  static Value* input(Graph& graph, const Shape& shape, const char* name,
                      DType dtype = DType::f32) {
    return graph.add_input(Type::tensor(dtype, Dims(shape.begin(), shape.end())), name);
  }

  int live_ = 0;
};

TEST_F(LibraryProducts, MatricesAndBatches) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{5, 7}, {7, 3}}, {{2, 3, 5, 7}, {7, 4}}, {{2, 3, 5, 7}, {2, 3, 7, 4}}}) {
    Graph graph;
    graph.outputs = {graph.add(MatMul{}, {input(graph, a, "a"), input(graph, b, "b")})};
    EXPECT_EQ(expect_same(graph, {sample<float>(a, 1), sample<float>(b, 1, 2)}), 1) << a.text();
  }
}

TEST_F(LibraryProducts, UnevenBatchesRunOnTheOwnKernel) {
  Graph graph;
  graph.outputs = {
      graph.add(MatMul{}, {input(graph, {2, 1, 5, 7}, "a"), input(graph, {3, 7, 4}, "b")})};
  EXPECT_EQ(expect_same(graph, {sample<float>({2, 1, 5, 7}, 1), sample<float>({3, 7, 4}, 1, 2)}),
            0);
}

TEST_F(LibraryProducts, GemmWithTurnedOperandsAndBias) {
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true}) {
      Graph graph;
      const Shape a = turn_a ? Shape{7, 5} : Shape{5, 7}, b = turn_b ? Shape{3, 7} : Shape{7, 3};
      graph.outputs = {
          graph.add(Gemm{.alpha = 0.5f, .trans_a = turn_a, .trans_b = turn_b},
                    {input(graph, a, "a"), input(graph, b, "b"), input(graph, {3}, "c")})};
      EXPECT_EQ(expect_same(
                    graph, {sample<float>(a, 1), sample<float>(b, 1, 2), sample<float>({3}, 1, 3)}),
                1);
    }
}

TEST_F(LibraryProducts, EpiloguesAreTheLibrarys) {
  for (const bool gelu : {false, true}) {
    Graph graph;
    Value* sum =
        graph.add(Add{}, {graph.add(MatMul{}, {input(graph, {6, 8}, "x"),
                                               graph.add_constant(sample<float>({8, 9}, 1, 2))}),
                          graph.add_constant(sample<float>({9}, 1, 3))});
    graph.outputs = {gelu ? graph.add(Gelu{.approximate = "tanh"}, {sum})
                          : graph.add(Relu{}, {sum})};
    EXPECT_EQ(expect_same(graph, {sample<float>({6, 8}, 1)}), 1);
  }
}

TEST_F(LibraryProducts, HalfPrecision) {
  Graph graph;
  graph.outputs = {graph.add(
      MatMul{}, {input(graph, {5, 16}, "a", DType::f16), input(graph, {16, 8}, "b", DType::f16)})};
  EXPECT_EQ(expect_same(graph, {sample<Float16>({5, 16}, 1), sample<Float16>({16, 8}, 1, 2)},
                        {2e-3, 2e-3}),
            1);
}

/// The second product takes the first one's result, so that both are one recording.
TEST_F(LibraryProducts, AreRecordedLikeKernels) {
  Graph graph;
  Value* w = graph.add_constant(sample<float>({8, 8}, 1, 2));
  Value* first = graph.add(MatMul{}, {input(graph, {6, 8}, "x"), w});
  graph.outputs = {graph.add(MatMul{}, {first, w})};
  EXPECT_EQ(expect_same(graph, {sample<float>({6, 8}, 1)}), 2);
}

TEST_F(LibraryProducts, WhatItRefusesRunsOnTheOwnKernel) {
  cuda::set_fake_blas_empty(true);
  Graph graph;
  graph.outputs = {graph.add(MatMul{}, {input(graph, {5, 7}, "a"), input(graph, {7, 3}, "b")})};
  EXPECT_EQ(expect_same(graph, {sample<float>({5, 7}, 1), sample<float>({7, 3}, 1, 2)}), 0);
}

/// TF32 is taken where it is asked for, and said; the results are those of rounded inputs.
TEST_F(LibraryProducts, PrecisionIsAskedForAndReported) {
  Graph graph;
  Value *a = input(graph, {5, 40}, "a"), *b = input(graph, {40, 7}, "b");
  graph.outputs = {graph.add(MatMul{}, {a, b})};
  const std::vector<Datum> inputs{sample<float>({5, 40}, 1), sample<float>({40, 7}, 1, 2)};
  Session plain(compile(graph.clone()).plan);
  const Tensor wanted = plain.run(inputs)[0].tensor.clone();
  double apart[3] = {};
  for (const auto& [precision, text] : {std::pair{MatmulPrecision::highest, "no TF32"},
                                        {MatmulPrecision::high, "rounded to TF32"},
                                        {MatmulPrecision::medium, "rounded to bf16"}}) {
    CompileOptions options;
    options.backend = std::make_shared<cuda::CudaBackend>(
        cuda::Device::open(StandIn::instance().tables(), 0), precision);
    Session session(compile(graph.clone(), options).plan);
    const Tensor& got = session.run(inputs)[0].tensor;
    double& most = apart[static_cast<size_t>(precision)];
    for (int64_t i = 0; i < got.elements(); ++i)
      most = std::max(most, std::fabs(got.to_double(i) - wanted.to_double(i)));
    for (const Step& step : session.plan().steps())
      if (step.row && step.row->name == "product/cublaslt") {
        EXPECT_NE(step.kernel->detail().find(text), std::string::npos) << step.kernel->detail();
      }
  }
  EXPECT_LT(apart[0], 1e-5);
  EXPECT_GT(apart[1], 1e-4);
  EXPECT_LT(apart[1], 1e-2);
  EXPECT_GT(apart[2], 4 * apart[1]);
}

/// x, quantised to 8-bit floats and back, times weights of that kind.
Graph& float8_product(Graph& graph, DType left, DType right, const Shape& a, const Shape& b) {
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims(a.begin(), a.end())), "x");
  Value* scale = graph.add_constant(one_float(0.05f));
  Value* codes = graph.add(QuantizeLinear{.output_dtype = left}, {x, scale});
  Value* w = graph.add_constant(float8(sample<float>(b, 4, 2), right));
  Value* product = graph.add(
      MatMul{}, {graph.add(DequantizeLinear{}, {codes, scale}),
                 graph.add(DequantizeLinear{}, {w, graph.add_constant(one_float(0.2f))})});
  graph.outputs = {graph.add(Relu{}, {product})};
  return graph;
}

TEST_F(LibraryProducts, FloatsOfEightBits) {
  StandIn::instance().set_arch(90);
  const Shape a{2, 3, 32}, b{32, 16};
  const std::vector<Datum> inputs{sample<float>(a, 2)};
  constexpr DType kWide = DType::f8e5m2, kFine = DType::f8e4m3fn;
  for (const auto& [left, right] : {std::pair{kFine, kFine}, {kFine, kWide}, {kWide, kFine}}) {
    Graph graph;
    EXPECT_EQ(expect_same(float8_product(graph, left, right, a, b), inputs), 1);
  }
}

/// Weights that rows keep turned are nowhere else on the device, and the own kernel reads them so;
/// those that somebody else reads are there twice.
TEST_F(LibraryProducts, BytesLieOnTheDeviceOnce) {
  const Shape a{2, 5, 64}, b{64, 96};
  const std::vector<Datum> inputs{bytes<uint8_t>(a), bytes<int8_t>({1, 96}, 4)};
  CompileOptions options;
  options.backend =
      std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
  for (const bool read_elsewhere : {false, true}) {
    Graph graph;
    Value* x = input(graph, a, "x", DType::u8);
    Value* w = graph.add_constant(bytes<int8_t>(b, 2));
    Value* zeros = graph.add_constant(bytes<uint8_t>({5}, 3));
    graph.outputs = {graph.add(MatMulInteger{}, {x, w, zeros})};
    Value* more = input(graph, {1, 96}, "more", DType::i8);
    if (read_elsewhere) graph.outputs.push_back(graph.add(Concat{.axis = 0}, {more, w}));
    const auto plan = compile(graph.clone(), options).plan;
    ASSERT_TRUE(plan->device_constants());
    EXPECT_EQ(plan->device_constants()->bytes() >= 64 * 96, read_elsewhere);
    for (const bool empty : {false, true}) {
      cuda::set_fake_blas_empty(empty);
      EXPECT_EQ(expect_same(graph, inputs), empty ? 0 : 1);
    }
    cuda::set_fake_blas_empty(false);
  }
}

/// Sizes that have no algorithm are told of by the session, with the step.
TEST_F(LibraryProducts, SaysWhenSizesAreNotForTheLibrary) {
  Graph graph;
  Value* a = input(graph, {5, 8}, "a");
  graph.outputs = {graph.add(MatMul{}, {a, graph.add_constant(sample<float>({8, 3}, 1, 2))})};
  CompileOptions options;
  options.backend =
      std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
  for (const bool empty : {false, true}) {
    cuda::set_fake_blas_empty(empty);
    Session session(compile(graph.clone(), options).plan);
    session.run(std::vector<Datum>{sample<float>({5, 8}, 1)});
    const auto notes = session.notes();
    ASSERT_EQ(notes.size(), empty ? 1u : 0u);
    if (!empty) continue;
    EXPECT_EQ(session.plan().steps()[notes[0].first].row->name, "product/cublaslt");
    EXPECT_NE(notes[0].second.find("a kernel of dais runs"), std::string::npos);
  }
  cuda::set_fake_blas_empty(false);
}

/// What cuBLASLt does not take, by type, by size, or when sizes are bound, is for the own row;
/// older devices widen on the device and multiply as f32.
TEST_F(LibraryProducts, FloatsOfEightBitsThatItRefusesHaveAnOwnRow) {
  StandIn::instance().set_arch(90);
  const Shape a{2, 3, 32};
  const std::vector<Datum> inputs{sample<float>(a, 2)};
  for (const auto& [dtype, columns] : {std::pair{DType::f8e5m2, 16}, {DType::f8e4m3fn, 12}}) {
    Graph graph;
    EXPECT_EQ(expect_same(float8_product(graph, dtype, dtype, a, {32, columns}), inputs), 0);
    CompileOptions options;
    options.backend =
        std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
    const auto plan = compile(graph.clone(), options).plan;
    EXPECT_TRUE(plan->warnings().empty()) << plan->warnings()[0];
    const auto& steps = plan->steps();
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      return step.row && step.row->name == "bytes/cuda" && step.place == Place::device;
    }));
  }
  Graph refused;
  float8_product(refused, DType::f8e4m3fn, DType::f8e4m3fn, a, {32, 16});
  cuda::set_fake_blas_empty(true);
  EXPECT_EQ(expect_same(refused, inputs), 0);
  cuda::set_fake_blas_empty(false);
  StandIn::instance().set_arch(80);
  Graph graph;
  EXPECT_EQ(
      expect_same(float8_product(graph, DType::f8e4m3fn, DType::f8e4m3fn, a, {32, 16}), inputs), 1);
}

/// The double of the tests is as strict as what it stands for is documented to be.
TEST_F(LibraryProducts, RefusesWhatTheLibraryRefuses) {
  const auto device = cuda::Device::open(StandIn::instance().tables(), 0);
  const auto knows = [&](const BlasProblem& problem) {
    return BlasCall::find(*device, problem) != nullptr;
  };
  using enum cuda::DataKind;
  const BlasProblem whole{.compute = cuda::BlasCompute::i32,
                          .a = {i8, 16, 8},
                          .b = {i8, 16, 5},
                          .d = {i32, 8, 5},
                          .turn_a = true};
  EXPECT_TRUE(knows(whole));
  BlasProblem other = whole;
  other.turn_a = false;
  other.a = {i8, 8, 16};
  EXPECT_FALSE(knows(other)) << "the depth is not innermost";
  other = whole;
  other.a.columns = other.d.rows = 6;
  EXPECT_FALSE(knows(other)) << "six columns";
  other = whole;
  other.a.rows = other.b.rows = 18;
  EXPECT_FALSE(knows(other)) << "a depth of 18";
  other = whole;
  other.epilogue = cuda::BlasEpilogue::relu;
  EXPECT_FALSE(knows(other)) << "an epilogue";
  other = whole;
  other.d.kind = f32;
  EXPECT_FALSE(knows(other)) << "results in float";

  const BlasProblem small{
      .a = {f8e4m3, 32, 16}, .b = {f8e5m2, 32, 5}, .d = {f16, 16, 5}, .turn_a = true};
  EXPECT_TRUE(knows(small));
  other = small;
  other.a.kind = f8e5m2;
  EXPECT_FALSE(knows(other)) << "both e5m2";
  other = small;
  other.turn_a = false;
  other.a = {f8e4m3, 16, 32};
  EXPECT_FALSE(knows(other)) << "the depth is not innermost";
  other = small;
  other.a.rows = other.b.rows = 24;
  EXPECT_FALSE(knows(other)) << "a depth of 24 bytes";
  other = small;
  other.compute = cuda::BlasCompute::f32_fast_tf32;
  EXPECT_FALSE(knows(other)) << "another type of sums";
}

TEST_F(LibraryProducts, BytesOfEverySign) {
  const Shape a{3, 8}, b{8, 12};
  EXPECT_EQ((expect_same_bytes<int8_t, int8_t>(a, b)), 1);
  EXPECT_EQ((expect_same_bytes<uint8_t, int8_t>(a, b)), 1);
  EXPECT_EQ((expect_same_bytes<int8_t, uint8_t>(a, b)), 1);
  EXPECT_EQ((expect_same_bytes<uint8_t, uint8_t>(a, b, one<uint8_t>(9), one<uint8_t>(0))), 1);
}

TEST_F(LibraryProducts, BytesWithZeroPointsOfRowsAndColumns) {
  const Shape a{2, 9, 72}, b{72, 20};
  EXPECT_EQ(
      (expect_same_bytes<uint8_t, int8_t>(a, b, bytes<uint8_t>({9}, 3), bytes<int8_t>({20}, 4))),
      1);
  EXPECT_EQ((expect_same_bytes<int8_t, uint8_t>(a, b, one<int8_t>(-7), one<uint8_t>(130))), 1);
}

TEST_F(LibraryProducts, QuantisedProductsAndTheirScales) {
  Graph graph;
  const auto constant = [&](const Tensor& tensor) { return graph.add_constant(tensor); };
  Value* first = graph.add(QLinearMatMul{},
                           {input(graph, {5, 16}, "x", DType::u8), constant(one_float(0.02f)),
                            constant(one<uint8_t>(120)), constant(bytes<int8_t>({16, 8}, 2)),
                            constant(sample<float>({8}, 0.01, 5)), constant(bytes<int8_t>({8}, 6)),
                            constant(one_float(0.05f)), constant(one<uint8_t>(100))});
  Value* second = graph.add(
      QGemm{.alpha = 0.5f, .trans_b = true},
      {first, constant(one_float(0.05f)), constant(one<uint8_t>(100)),
       constant(bytes<int8_t>({12, 8}, 3)), constant(one_float(0.01f)), constant(one<int8_t>(0)),
       constant(Tensor::of<int32_t>({12}, {1, -2, 3, 4, 5, 6, 7, 8, 900, 10, 11, 12}))});
  graph.outputs = {second};
  EXPECT_EQ(expect_same(graph, {bytes<uint8_t>({5, 16})}, {1e-6, 1e-5}), 2);
}

TEST_F(LibraryProducts, BytesToFloats) {
  Graph graph;
  const auto constant = [&](const Tensor& tensor) { return graph.add_constant(tensor); };
  graph.outputs = {graph.add(
      MatMulIntegerToFloat{},
      {input(graph, {7, 16}, "x", DType::u8), constant(bytes<int8_t>({16, 8}, 2)),
       input(graph, {}, "scale"), constant(sample<float>({8}, 0.01, 5)),
       input(graph, {}, "zero", DType::u8), nullptr, constant(sample<float>({8}, 3, 6))})};
  EXPECT_EQ(expect_same(graph, {bytes<uint8_t>({7, 16}), one_float(0.3f), one<uint8_t>(77)},
                        {1e-5, 1e-4}),
            1);
}

/// cuBLASLt takes bytes in multiples of four, and B turned, which only constants can be.
TEST_F(LibraryProducts, BytesThatItRefusesRunOnTheOwnKernel) {
  for (const auto& [a, b] :
       std::vector<std::pair<Shape, Shape>>{{{3, 8}, {8, 6}}, {{3, 10}, {10, 8}}})
    EXPECT_EQ((expect_same_bytes<int8_t, int8_t>(a, b)), 0);
  Graph graph;
  graph.outputs = {graph.add(MatMulInteger{}, {input(graph, {4, 8}, "a", DType::i8),
                                               input(graph, {8, 4}, "b", DType::i8)})};
  EXPECT_EQ(expect_same(graph, {bytes<int8_t>({4, 8}), bytes<int8_t>({8, 4}, 2)}), 0);
  CompileOptions options;
  options.backend =
      std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
  const auto plan = compile(graph.clone(), options).plan;
  const auto step = std::find_if(plan->steps().begin(), plan->steps().end(), [](const Step& each) {
    return each.row && each.row->name == "bytes/cuda";
  });
  ASSERT_NE(step, plan->steps().end());
  ASSERT_FALSE(step->refusals.empty());
  EXPECT_EQ(step->refusals[0].first, "bytes/cublaslt");
  EXPECT_EQ(step->refusals[0].second, "cuBLASLt takes bytes turned, and B is no constant matrix");
  cuda::set_fake_blas_empty(true);
  const Shape a{3, 8}, b{8, 12};
  EXPECT_EQ((expect_same_bytes<uint8_t, int8_t>(a, b)), 0);
}

}  // namespace
}  // namespace dais
