#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

Tensor u8(int value) { return Tensor::scalar(static_cast<uint8_t>(value)); }
Tensor i8(int value) { return Tensor::scalar(static_cast<int8_t>(value)); }
Tensor bytes(DType dtype, const Shape& shape, uint64_t seed) {
  return dtype == DType::u8 ? sample<uint8_t>(shape, 255, seed) : sample<int8_t>(shape, 127, seed);
}
Tensor byte(DType dtype, int value) { return dtype == DType::u8 ? u8(value) : i8(value); }

TEST(ByteRows, IntegerProductsAreExact) {
  const std::pair<Shape, Shape> shapes[] = {
      {{1, 64}, {64, 16}},     {{3, 5}, {5, 1}},       {{33, 130}, {130, 47}},
      {{17, 96}, {96, 33}},    {{2, 7, 20}, {20, 18}}, {{70, 1600}, {1600, 40}},
      {{65, 6200}, {6200, 9}}, {{2, 9, 8}, {2, 8, 5}}, {{4, 0}, {0, 3}}};
  for (const auto& [a, b] : shapes)
    for (const DType left : {DType::u8, DType::i8})
      for (const DType right : {DType::u8, DType::i8}) {
        const std::vector<Tensor> in{bytes(left, a, 1), bytes(right, b, 2), byte(left, 7),
                                     byte(right, 3)};
        EXPECT_GT(check_rows(MatMulInteger{}, in, {}, {1, 3}), 0);
        EXPECT_GT(check_rows(MatMulInteger{}, in), 0);
        EXPECT_GT(check_rows(MatMulInteger{}, {in[0], in[1]}, {}, {1}), 0);
      }
}

TEST(ByteRows, ProductsWithScales) {
  const Tensor a = bytes(DType::u8, {19, 70}, 1), b = bytes(DType::i8, {70, 35}, 2);
  const Tensor scales = sample<float>({35}, 0.01, 3), zeros = bytes(DType::i8, {35}, 4);
  const Tensor bias = sample<float>({35}, 2, 5), small = Tensor::scalar(0.02F);
  EXPECT_GT(check_rows(MatMulIntegerToFloat{}, {a, b, small, scales, u8(9), zeros, bias},
                       {1e-6, 1e-6}, {1, 3, 5}),
            0);
  EXPECT_GT(
      check_rows(QLinearMatMul{}, {a, small, u8(128), b, scales, zeros, small, u8(100)}, {}, {3}),
      0);
  const Tensor whole = sample<int32_t>({35}, 3000, 6), turned = bytes(DType::i8, {35, 70}, 7);
  EXPECT_GT(check_rows(QGemm{.trans_b = true},
                       {a, small, u8(3), turned, small, i8(0), whole, Tensor::scalar(1.5F), i8(4)},
                       {}, {3, 6}),
            0);
}

QLinearConv window(std::vector<int64_t> pads, std::vector<int64_t> strides, int64_t group = 1,
                   std::vector<int64_t> dilations = {}) {
  QLinearConv out{.dilations = std::move(dilations),
                  .pads = std::move(pads),
                  .strides = std::move(strides),
                  .group = group};
  out.channels_last = true;
  return out;
}

void check_conv(const QLinearConv& attrs, const Shape& x, const Shape& w) {
  for (const DType act : {DType::u8, DType::i8})
    for (const DType weight : {DType::u8, DType::i8}) {
      const Tensor scales = sample<float>({w[0]}, 0.02, 3), one = Tensor::scalar(0.03F);
      const Tensor bias = sample<int32_t>({w[0]}, 2000, 4);
      const std::vector<Tensor> in{
          bytes(act, x, 1),     one,           byte(act, 11),
          bytes(weight, w, 2),  scales,        byte(weight, weight == DType::u8 ? 128 : 0),
          Tensor::scalar(0.5F), byte(act, 20), bias};
      EXPECT_GT(check_rows(attrs, in, {}, {1, 2, 3, 4, 5, 6, 7, 8}), 0);
      std::vector<Tensor> odd = in;
      odd[5] = byte(weight, 5);
      EXPECT_GT(check_rows(attrs, odd, {}, {1, 2, 3, 4, 5, 6, 7, 8}), 0);
    }
}

TEST(ByteRows, Convolutions) {
  check_conv(window({}, {}), {2, 5, 6, 24}, {20, 24, 1, 1});
  check_conv(window({1, 1, 1, 1}, {2, 2}), {1, 9, 11, 3}, {18, 3, 3, 3});
  check_conv(window({3, 3, 3, 3}, {2, 2}), {1, 20, 20, 3}, {8, 3, 7, 7});
  check_conv(window({2, 0, 1, 2}, {1, 1}, 1, {2, 2}), {1, 9, 8, 5}, {4, 5, 3, 2});
  check_conv(window({1, 1, 1, 1}, {1, 1}, 2), {2, 6, 7, 8}, {6, 4, 3, 3});
  check_conv(window({1, 1, 1, 1}, {1, 1}, 70), {2, 6, 7, 70}, {70, 1, 3, 3});
  check_conv(window({2, 2}, {2}, 5), {3, 30, 5}, {5, 1, 5});
  QLinearConv first = window({1, 1, 1, 1}, {1, 1});
  first.channels_last = false;
  check_conv(first, {2, 3, 9, 7}, {10, 3, 3, 3});
}

TEST(ByteRows, ConversionsAndMaximum) {
  const Tensor x = sample<float>({3, 7, 50}, 40, 1), scale = Tensor::scalar(0.25F);
  EXPECT_GT(check_rows(QuantizeLinear{}, {x, scale, u8(100)}), 0);
  EXPECT_GT(check_rows(QuantizeLinear{}, {x, scale, i8(-3)}), 0);
  const Tensor scales = sample<float>({7}, 1, 2);
  EXPECT_GT(check_rows(DequantizeLinear{}, {bytes(DType::i8, {3, 7, 50}, 3), scales}), 0);
  EXPECT_GT(check_rows(DequantizeLinear{}, {bytes(DType::u8, {301}, 3), scale, u8(9)}), 0);
  EXPECT_GT(check_rows(DynamicQuantizeLinear{}, {x}, {}, {}, 3), 0);
  EXPECT_GT(check_rows(DynamicQuantizeLinear{}, {sample<float>({5}, 0, 1)}, {}, {}, 3), 0);
  MaxPool pool{.kernel_shape = {3, 2}, .pads = {1, 0, 1, 1}, .strides = {2, 1}};
  pool.channels_last = true;
  EXPECT_GT(check_rows(pool, {bytes(DType::u8, {2, 7, 8, 19}, 5)}), 0);
  EXPECT_GT(check_rows(pool, {bytes(DType::i8, {2, 7, 8, 19}, 5)}), 0);
}

}  // namespace
}  // namespace dais
