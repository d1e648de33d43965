// Products of bytes and of codes of a few bits: exact sums in both kernels, zero points on every
// side.
#include "byte_samples.h"
#include "ops/attention/attention.h"
#include "ops/conv/conv.h"
#include "ops/matmul/matmul.h"
#include "ops/quantize/quantize.h"
#include "watched_row.h"

namespace dais {
namespace {

template <typename A, typename B>
void check_products(const Shape& a, const Shape& b) {
  watch_row(MatMulInteger{}, {bytes<A>(a), bytes<B>(b, 2)});
  watch_row(MatMulInteger{}, {bytes<A>(a), bytes<B>(b, 2), one<A>(3), one<B>(100)});
  const int64_t rows = a[a.rank() - 2], columns = b.back();
  watch_row(MatMulInteger{},
            {bytes<A>(a), bytes<B>(b, 2), bytes<A>({rows}, 3), bytes<B>({columns}, 4)});
}

TEST(ByteRows, SmallTilesOfEverySign) {
  check_products<uint8_t, int8_t>({3, 70}, {70, 5});
  check_products<int8_t, int8_t>({2, 9, 33}, {33, 7});
  check_products<uint8_t, uint8_t>({4, 64}, {64, 4});
  check_products<int8_t, uint8_t>({1, 1}, {1, 1});
}

TEST(ByteRows, LargeTilesOnCores) {
  check_products<uint8_t, int8_t>({40, 96}, {96, 150});
  check_products<int8_t, uint8_t>({130, 37}, {37, 40});
}

TEST(ByteRows, FloatsOfScaledSums) {
  const WatchedCase how{.tolerance = {1e-6, 1e-4}};
  watch_row(MatMulIntegerToFloat{},
            {bytes<uint8_t>({2, 5, 30}), bytes<int8_t>({30, 8}, 2), one_float(0.02f),
             sample<float>({8}, 0.1, 3), one<uint8_t>(120), Tensor(), sample<float>({8}, 9, 4)},
            how);
  watch_row(
      MatMulIntegerToFloat{},
      {bytes<int8_t>({40, 64}), bytes<int8_t>({64, 70}, 2), one_float(0.02f), one_float(0.5f)},
      how);
}

/// Every pair of types in both kernels, batches, scales of rows and columns, and what is added.
TEST(ByteRows, FloatsOfEightBits) {
  const WatchedCase how{.tolerance = {1e-5, 1e-4}};
  for (const DType left : {DType::f8e4m3fn, DType::f8e5m2})
    for (const DType right : {DType::f8e4m3fn, DType::f8e5m2}) {
      const auto run = [&](const Shape& a, const Shape& b, const Tensor& a_scale,
                           const Tensor& b_scale, const Tensor& added = {}) {
        watch_row(MatMulIntegerToFloat{},
                  {float8(sample<float>(a, 3), left), float8(sample<float>(b, 2, 2), right),
                   a_scale, b_scale, Tensor(), Tensor(), added},
                  how);
      };
      run({3, 70}, {70, 5}, one_float(0.5f), one_float(2));
      run({2, 9, 33}, {2, 33, 7}, sample<float>({9}, 1, 3), sample<float>({7}, 1, 4),
          sample<float>({7}, 1, 5));
      run({130, 200}, {200, 40}, one_float(0.5f), sample<float>({40}, 1, 6));
    }
}

/// Numbers at the ends of the formats, their subnormal ones, and NaN and infinity as they are.
TEST(ByteRows, FloatsOfEightBitsOfEveryCode) {
  for (const DType dtype : {DType::f8e4m3fn, DType::f8e5m2})
    for (const int64_t columns : {1, 40}) {
      Tensor codes(dtype, Shape{256, 1});
      for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(codes.raw())[i] = static_cast<uint8_t>(i);
      const Tensor ones = float8(
          Tensor::of<float>({1, columns}, std::vector<float>(static_cast<size_t>(columns), 1.0f)),
          dtype);
      watch_row(MatMulIntegerToFloat{}, {codes, ones, one_float(1), one_float(1)},
                {.tolerance = {0, 1e-30}});
    }
}

TEST(ByteRows, QuantisedMatrices) {
  for (const Shape& a : {Shape{5, 30}, Shape{50, 30}})
    watch_row(QLinearMatMul{},
              {bytes<uint8_t>(a), one_float(0.02f), one<uint8_t>(120), bytes<int8_t>({30, 40}, 2),
               one_float(0.01f), one<int8_t>(-3), one_float(0.05f), one<uint8_t>(100)});
  watch_row(
      QGemm{.alpha = 0.5f, .trans_b = true},
      {bytes<int8_t>({6, 20}), one_float(0.02f), one<int8_t>(1), bytes<int8_t>({9, 20}, 2),
       one_float(0.01f), one<int8_t>(0), Tensor::of<int32_t>({9}, {1, -2, 3, 4, 5, 6, 7, 8, 900})});
}

TEST(ByteRows, Convolutions) {
  watch_row(ConvInteger{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}},
            {bytes<uint8_t>({2, 3, 7, 6}), bytes<int8_t>({5, 3, 3, 3}, 2), one<uint8_t>(128)});
  const Tensor scales = Tensor::of<float>({4}, {0.01f, 0.02f, 0.03f, 0.04f});
  const Tensor zeros = Tensor::of<int8_t>({4}, {0, 1, -2, 3});
  for (const int64_t group : {1, 2})
    watch_row(
        QLinearConv{
            .kernel_shape = {3, 2}, .pads = {1, 0, 2, 1}, .strides = {2, 1}, .group = group},
        {bytes<uint8_t>({2, 4, 9, 8}), one_float(0.02f), one<uint8_t>(130),
         bytes<int8_t>({4, 4 / group, 3, 2}, 2), scales, zeros, one_float(0.5f), one<uint8_t>(7),
         Tensor::of<int32_t>({4}, {10, -200, 3000, 0})});
}

TEST(ByteRows, DynamicScale) {
  const WatchedCase all{.outputs = 3};
  watch_row(DynamicQuantizeLinear{}, {sample<float>({3, 1000}, 2)}, all);
  watch_row(DynamicQuantizeLinear{}, {sample<float>({20000}, 2)}, all);
  watch_row(DynamicQuantizeLinear{}, {Tensor::of<float>({2}, {0, 0})}, all);
  watch_row(DynamicQuantizeLinear{}, {Tensor::of<float>({3}, {-1, -2.5f, -1.5f})}, all);
}

TEST(ByteRows, CodesOfAFewBits) {
  const WatchedCase how{.tolerance = {1e-4, 1e-3}};
  for (const int64_t bits : {2, 4, 8})
    for (const int64_t depth : {64, 70}) {
      const MatMulNBits attrs{.depth = depth, .columns = 11, .bits = bits, .block_size = 32};
      const int64_t blocks = (depth + 31) / 32;
      const Tensor a = sample<float>({9, depth}, 1),
                   packed = bytes<uint8_t>({11, blocks, 4 * bits}, 2);
      const Tensor scales = sample<float>({11, blocks}, 1, 3);
      watch_row(attrs, {a, packed, scales}, how);
      watch_row(attrs, {a, packed, scales, bytes<uint8_t>({11 * ((blocks * bits + 7) / 8)}, 4)},
                how);
      watch_row(attrs, {a, packed, scales, sample<float>({11, blocks}, 2, 5)}, how);
    }
}

/// Caches that grow by a step, rotated keys, examples of different lengths.
TEST(CachedAttention, GroupedWithRotation) {
  const int64_t examples = 2, heads = 4, groups = 2, size = 32, capacity = 8;
  for (const bool interleaved : {false, true})
    for (const int64_t length : {1, 3}) {
      const GroupQueryAttention attrs{.num_heads = heads,
                                      .kv_num_heads = groups,
                                      .local_window_size = length == 3 ? 4 : -1,
                                      .do_rotary = true,
                                      .rotary_interleaved = interleaved};
      const Shape cache{examples, groups, capacity, size};
      watch_row(attrs,
                {sample<float>({examples, length, heads * size}, 1),
                 sample<float>({examples, length, groups * size}, 1, 2),
                 sample<float>({examples, length, groups * size}, 1, 3), sample<float>(cache, 1, 4),
                 sample<float>(cache, 1, 5), Tensor::of<int32_t>({2}, {6, 3}),
                 Tensor::of<int32_t>({1}, {7}), sample<float>({16, size / 2}, 1, 6),
                 sample<float>({16, size / 2}, 1, 7)},
                {.tolerance = {1e-5, 1e-5}, .constants = {6}, .outputs = 3});
    }
}

}  // namespace
}  // namespace dais
