// Rows of the GPU against the references, every access of their kernels watched.
#include "api/compile.h"
#include "ops/cast/cast.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "row_agreement.h"
#include "runtime/session.h"

namespace dais {
namespace {

const RowTolerance kSingle{2e-6, 2e-6};
const RowTolerance kHalf{1e-3, 1e-3};

template <typename... Structs>
void check_unary(const Tensor& x, const RowTolerance& tolerance) {
  for (const int ran : {check_device_rows(Structs{}, {x}, tolerance)...}) EXPECT_EQ(ran, 1);
}

TEST(DeviceRows, FunctionsOfOneOperand) {
  const Tensor x = sample<float>({3, 37}, 0.9);
  check_unary<Abs, Acos, Asin, Asinh, Atan, Atanh, Ceil, Cos, Cosh, Erf, Exp, Floor, Neg,
              Reciprocal, Round, Sigmoid, Sign, Sin, Sinh, Tan, Tanh, Relu, HardSwish, Softplus,
              Softsign, Mish, LeakyRelu, Elu, Celu, Selu, HardSigmoid, ThresholdedRelu, Shrink,
              Swish, Gelu>(x, {4e-6, 1e-6});
  EXPECT_EQ(check_device_rows(Gelu{.approximate = "tanh"}, {x}, {4e-6, 1e-6}), 1);
}

TEST(DeviceRows, ElementTypes) {
  EXPECT_EQ(check_device_rows(Mul{}, {sample<double>({7, 5}), sample<double>({7, 5})}), 1);
  EXPECT_EQ(check_device_rows(Add{}, {sample<Float16>({64}), sample<Float16>({64})}, kHalf), 1);
  EXPECT_EQ(check_device_rows(Sub{}, {sample<BFloat16>({9}), sample<BFloat16>({9})}, {1e-2, 1e-2}),
            1);
  EXPECT_EQ(check_device_rows(Mul{}, {sample<int8_t>({33}, 100), sample<int8_t>({33}, 100, 2)}), 1);
  EXPECT_EQ(check_device_rows(Div{}, {sample<int64_t>({33}, 9), sample<int64_t>({33}, 3, 2)}), 1);
  EXPECT_EQ(check_device_rows(Sub{}, {sample<uint8_t>({33}, 200), sample<uint8_t>({33}, 200, 2)}),
            1);
  EXPECT_EQ(check_device_rows(Less{}, {sample<float>({5, 4}), sample<float>({4})}), 1);
  EXPECT_EQ(check_device_rows(And{}, {sample<bool>({19}), sample<bool>({19}, 1, 2)}), 1);
  EXPECT_EQ(check_device_rows(
                Where{}, {sample<bool>({6, 1}), sample<int32_t>({6, 8}), sample<int32_t>({8})}),
            1);
}

TEST(DeviceRows, OperandsRepeatAlongAnyAxis) {
  const Tensor x = sample<float>({3, 4, 5, 8});
  for (const Shape& shape : {Shape{}, Shape{8}, Shape{5, 1}, Shape{4, 1, 1}, Shape{3, 1, 5, 1},
                             Shape{1, 4, 1, 8}, Shape{3, 4, 5, 8}}) {
    EXPECT_EQ(check_device_rows(Add{}, {x, sample<float>(shape, 1, 5)}, kSingle), 1);
    EXPECT_EQ(check_device_rows(Sub{}, {sample<float>(shape, 1, 5), x}, kSingle), 1);
  }
  EXPECT_EQ(check_device_rows(Add{}, {sample<float>({0, 3}), sample<float>({3})}), 1);
  EXPECT_EQ(check_device_rows(Clip{}, {x, Tensor::scalar(-1.0f), Tensor()}, {}), 1);
  EXPECT_EQ(check_device_rows(Add{}, {x, Tensor::scalar(0.5f)}, kSingle, {1}), 1);
}

TEST(DeviceRows, Casts) {
  const Tensor x = sample<float>({67}, 300);
  for (const DType to : {DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8,
                         DType::u8, DType::boolean})
    EXPECT_EQ(check_device_rows(Cast{.to = to}, {x}, {1e-2, 1e-2}), 1) << dtype_name(to);
  EXPECT_EQ(check_device_rows(Cast{.to = DType::f32}, {sample<int64_t>({40}, 1e6)}), 1);
}

TEST(DeviceRows, Matrices) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{1, 1}, {1, 1}},
                                                                 {{65, 17}, {17, 70}},
                                                                 {{2, 3, 5, 7}, {7, 4}},
                                                                 {{2, 1, 5, 7}, {3, 7, 4}},
                                                                 {{7}, {7, 4}},
                                                                 {{3, 7}, {7}},
                                                                 {{3, 0}, {0, 4}}})
    EXPECT_EQ(
        check_device_rows(MatMul{}, {sample<float>(a, 1), sample<float>(b, 1, 2)}, {1e-5, 1e-5}), 1)
        << a.text() << b.text();
  EXPECT_EQ(check_device_rows(MatMul{}, {sample<Float16>({9, 16}, 1), sample<Float16>({16, 9}, 1)},
                              {2e-3, 2e-3}),
            1);
  EXPECT_EQ(check_device_rows(MatMul{}, {sample<int32_t>({5, 6}), sample<int32_t>({6, 5}, 4, 2)}),
            1);
  const Tensor a = sample<float>({20, 30}, 1), b = sample<float>({20, 40}, 1, 2);
  EXPECT_EQ(check_device_rows(Gemm{.alpha = 0.5f, .beta = 2, .trans_a = true},
                              {a, b, sample<float>({40}, 1, 3)}, {1e-5, 1e-5}),
            1);
  EXPECT_EQ(check_device_rows(Gemm{.trans_a = true, .trans_b = true},
                              {a, sample<float>({40, 20}, 1, 2), sample<float>({30, 1}, 1, 3)},
                              {1e-5, 1e-5}),
            1);
}

TEST(DeviceRows, MatricesOfSixteenBitsUseTheMatrixInstruction) {
  // Sizes with and without packs of eight, several tiles, batches, turned operands.
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{130, 40}, {40, 136}}, {{33, 17}, {17, 35}}, {{2, 64, 48}, {2, 48, 40}}}) {
    EXPECT_EQ(check_device_rows(MatMul{}, {sample<Float16>(a, 1), sample<Float16>(b, 1, 2)},
                                {2e-3, 2e-3}),
              1);
    EXPECT_EQ(check_device_rows(MatMul{}, {sample<BFloat16>(a, 1), sample<BFloat16>(b, 1, 2)},
                                {1e-2, 1e-2}),
              1);
  }
  EXPECT_EQ(check_device_rows(Gemm{.trans_a = true, .trans_b = true},
                              {sample<Float16>({40, 72}, 1), sample<Float16>({50, 40}, 1, 2),
                               sample<Float16>({50}, 1, 3)},
                              {2e-3, 2e-3}),
            1);
  EXPECT_EQ(
      check_device_rows(Conv{.pads = {1, 1, 1, 1}},
                        {sample<Float16>({1, 3, 9, 8}, 1), sample<Float16>({40, 3, 3, 3}, 1, 2)},
                        {2e-3, 2e-3}),
      1);
}

TEST(DeviceRows, Convolutions) {
  const RowTolerance close{1e-5, 1e-5};
  const Tensor x = sample<float>({2, 6, 9, 7}, 1), w = sample<float>({4, 3, 3, 2}, 1, 2);
  EXPECT_EQ(check_device_rows(
                Conv{.dilations = {1, 2}, .pads = {1, 0, 2, 1}, .strides = {2, 1}, .group = 2},
                {x, w, sample<float>({4}, 1, 3)}, close),
            1);
  EXPECT_EQ(
      check_device_rows(Conv{.auto_pad = "SAME_LOWER"},
                        {sample<float>({1, 3, 11}, 1), sample<float>({5, 3, 4}, 1, 2)}, close),
      1);
  EXPECT_EQ(
      check_device_rows(
          Conv{}, {sample<float>({1, 2, 4, 5, 6}, 1), sample<float>({3, 2, 2, 2, 3}, 1, 2)}, close),
      1);
  EXPECT_EQ(check_device_rows(
                ConvTranspose{.output_padding = {1, 0}, .pads = {1, 0, 0, 1}, .strides = {2, 3}},
                {sample<float>({2, 4, 5, 3}, 1), sample<float>({4, 6, 3, 2}, 1, 2),
                 sample<float>({6}, 1, 3)},
                close),
            1);
}

TEST(DeviceRows, GradientsOfConvolutions) {
  const RowTolerance close{1e-5, 1e-5};
  const Tensor dy = sample<float>({2, 4, 5, 4}, 1, 3), w = sample<float>({4, 3, 3, 2}, 1, 2);
  EXPECT_EQ(check_device_rows(
                ConvBackwardData{
                    .kernel_shape = {3, 2}, .pads = {1, 0, 1, 0}, .strides = {2, 2}, .group = 2},
                {dy, w, Tensor::of<int64_t>({4}, {{2, 6, 9, 8}})}, close, {2}),
            1);
  EXPECT_EQ(check_device_rows(
                ConvBackwardWeights{
                    .kernel_shape = {3, 2}, .pads = {1, 0, 1, 0}, .strides = {2, 2}, .group = 2},
                {sample<float>({2, 6, 9, 8}, 1), dy}, close),
            1);
}

/// Bytes that the lanes of all launches of a run asked for.
TEST(DeviceRows, FusedChainsReadOnceAndWriteOnce) {
  if (on_hardware()) GTEST_SKIP() << "only the emulated device counts";
  auto graph = std::make_unique<Graph>();
  const int64_t rows = 64, columns = 96;
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim(rows), Dim(columns)}), "x");
  Value* y = graph->add_input(Type::tensor(DType::f32, Dims{Dim(rows), Dim(columns)}), "y");
  Value* sum = graph->add(Add{}, {x, y});
  graph->outputs = {graph->add(Mul{}, {graph->add(Sigmoid{}, {sum}), sum})};
  CompileOptions options;
  options.backend = test_backend();
  Session session(compile(std::move(graph), options).plan);
  const std::vector<Datum> inputs{sample<float>({rows, columns}), sample<float>({rows, columns})};
  cuda::emulated::set_recording(true);
  cuda::emulated::take_launches();
  session.run(inputs);
  const auto launches = cuda::emulated::take_launches();
  cuda::emulated::set_recording(false);
  ASSERT_EQ(launches.size(), 1U);
  const auto& traffic = launches[0].traffic;
  const auto bytes = static_cast<uint64_t>(rows * columns) * 4;
  EXPECT_EQ(traffic.reads.bytes, 2 * bytes);
  EXPECT_EQ(traffic.writes.bytes, bytes);
  EXPECT_EQ(traffic.reads.efficiency(), 1);
  EXPECT_EQ(traffic.writes.efficiency(), 1);
}

}  // namespace
}  // namespace dais
