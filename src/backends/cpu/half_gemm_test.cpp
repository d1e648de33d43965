#include "backends/cpu/half_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "ir/dtype.h"

namespace dais::cpu {
namespace {

struct Matrix {
  std::vector<uint16_t> bits;
  std::vector<double> values;
};

Matrix draw(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Matrix out;
  for (int64_t i = 0; i < count; ++i) {
    const BFloat16 x(normal(random));
    out.bits.push_back(std::bit_cast<uint16_t>(x));
    out.values.push_back(static_cast<double>(static_cast<float>(x)));
  }
  return out;
}

/// Sums of `depth` products of normal numbers in f32: each rounding is below 2^-24 of a sum of some
/// sqrt(depth), and they add up like a random walk; six times that.
double tolerance(int64_t depth) { return 6 * 0x1p-24 * static_cast<double>(depth); }

class HalfGemm : public testing::Test {
 protected:
  void SetUp() override {
    if (machine_isa() < Isa::amx) GTEST_SKIP() << "needs the tile unit";
  }
};

TEST_F(HalfGemm, MultipliesFactorsInEitherOrderOfLines) {
  struct Case {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Case{1, 1, 1}, Case{33, 17, 65}, Case{70, 130, 1100},
                                Case{600, 40, 33}, Case{40, 1030, 96}, Case{530, 540, 520}})
    for (int form = 0; form < 4; ++form) {
      const bool a_turned = form % 2 == 1, b_turned = form / 2 == 1;
      const Matrix a = draw(m * k, 1), b = draw(k * n, 2), bias = draw(n, 3);
      std::vector<float> c(static_cast<size_t>(m * n), -1);
      HalfBlock block{.rows = m, .columns = n, .depth = k, .c = c.data(), .c_row = n};
      block.a = {.data = a.bits.data(), .line = a_turned ? m : k, .turned = a_turned};
      block.b = {.data = b.bits.data(), .line = b_turned ? k : n, .turned = b_turned};
      block.c_half = false;
      block.bias = bias.bits.data();
      half_gemm(block);
      std::vector<float> again(c.size());
      block.c = again.data();
      half_gemm_serial(block);
      EXPECT_EQ(c, again);
      for (int64_t i = 0; i < m; i += 7)
        for (int64_t j = 0; j < n; ++j) {
          double sum = bias.values[static_cast<size_t>(j)];
          for (int64_t d = 0; d < k; ++d)
            sum += a.values[static_cast<size_t>(a_turned ? d * m + i : i * k + d)] *
                   b.values[static_cast<size_t>(b_turned ? j * k + d : d * n + j)];
          ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, tolerance(k))
              << m << "x" << n << "x" << k << " form " << form << " at " << i << ", " << j;
        }
    }
}

/// The gradient of an input by a stride of 2 and a convolution: windows with every setting.
TEST_F(HalfGemm, ReadsWindowsOfImages) {
  for (const int64_t divide : {1, 2}) {
    HalfWindows w;
    w.size[0] = 5;
    w.size[1] = 7;
    w.pixel = w.channels = 40;
    w.cells[0] = 9;
    w.cells[1] = 8;
    w.kernel[0] = 3;
    w.kernel[1] = 2;
    w.tap_step[0] = divide == 1 ? 1 : -1;
    w.tap_step[1] = 2;
    w.start[0] = divide == 1 ? -2 : 1;
    w.start[1] = -1;
    w.divide[0] = w.divide[1] = divide;
    constexpr int64_t kImages = 3, kColumns = 20;
    const int64_t cells = kImages * w.cells[0] * w.cells[1];
    const int64_t depth = w.taps() * half_padded(w.channels);
    const Matrix image = draw(kImages * w.size[0] * w.size[1] * w.channels, 4);
    const Matrix b = draw(depth * kColumns, 5);
    const auto value = [&](int64_t cell, int64_t place) {
      const int64_t tap = place / half_padded(w.channels),
                    channel = place % half_padded(w.channels);
      const int64_t q = cell % w.cells[1], p = cell / w.cells[1] % w.cells[0];
      int64_t row = p * w.step[0] + tap / w.kernel[1] * w.tap_step[0] + w.start[0];
      int64_t column = q * w.step[1] + tap % w.kernel[1] * w.tap_step[1] + w.start[1];
      if (row < 0 || column < 0 || row % divide || column % divide) return 0.0;
      row /= divide;
      column /= divide;
      if (channel >= w.channels || row >= w.size[0] || column >= w.size[1]) return 0.0;
      const int64_t at = (cell / (w.cells[0] * w.cells[1]) * w.size[0] + row) * w.size[1] + column;
      return image.values[static_cast<size_t>(at * w.channels + channel)];
    };
    std::vector<float> c(static_cast<size_t>(cells * kColumns));
    HalfBlock block{
        .rows = cells, .columns = kColumns, .depth = depth, .c = c.data(), .c_row = kColumns};
    block.a = {.data = image.bits.data(), .windows = &w};
    block.b = {.data = b.bits.data(), .line = kColumns};
    block.c_half = false;
    half_gemm(block);
    for (int64_t i = 0; i < cells; ++i)
      for (int64_t j = 0; j < kColumns; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < depth; ++d)
          sum += value(i, d) * b.values[static_cast<size_t>(d * kColumns + j)];
        ASSERT_NEAR(c[static_cast<size_t>(i * kColumns + j)], sum, tolerance(depth));
      }
    // The same windows as the factor on the other side: one line of B for each cell.
    const Matrix left = draw(cells * 3, 6);
    std::vector<float> turned(static_cast<size_t>(3 * depth));
    HalfBlock other{
        .rows = 3, .columns = depth, .depth = cells, .c = turned.data(), .c_row = depth};
    other.a = {.data = left.bits.data(), .line = 3, .turned = true};
    other.b = {.data = image.bits.data(), .windows = &w};
    other.c_half = false;
    half_gemm(other);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < depth; ++j) {
        double sum = 0;
        for (int64_t cell = 0; cell < cells; ++cell)
          sum += left.values[static_cast<size_t>(cell * 3 + i)] * value(cell, j);
        ASSERT_NEAR(turned[static_cast<size_t>(i * depth + j)], sum, tolerance(cells));
      }
  }
}

TEST_F(HalfGemm, MultipliesWithAPackedFactor) {
  for (const bool turned : {false, true})
    for (const int64_t m : {1, 16, 37}) {
      constexpr int64_t n = 90, k = 600;
      const Matrix a = draw(m * k, 1), b = draw(k * n, 2);
      std::vector<float> c(static_cast<size_t>(m * n)), wanted(c.size());
      const std::vector<float> bias(n, 0.5F);
      HalfBlock block{.rows = m, .columns = n, .depth = k, .c = wanted.data(), .c_row = n};
      block.a = {.data = a.bits.data(), .line = k};
      block.b = {.data = b.bits.data(), .line = turned ? k : n, .turned = turned};
      block.c_half = false;
      block.wide_bias = bias.data();
      half_gemm(block);
      const auto numbers = static_cast<size_t>(half_packed_numbers(k, n));
      const PageMemory packed(numbers * sizeof(uint16_t));
      half_pack(block.b, k, n, packed.as<uint16_t>());
      block.c = c.data();
      half_gemm_packed(block, packed.as<uint16_t>());
      for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], wanted[i], tolerance(k)) << i;
    }
}

TEST_F(HalfGemm, RoundsToNearest) {
  const Matrix a = draw(40 * 64, 7), b = draw(64 * 48, 8);
  std::vector<float> wide(40 * 48);
  std::vector<uint16_t> narrow(40 * 48);
  HalfBlock block{.rows = 40, .columns = 48, .depth = 64, .c = wide.data(), .c_row = 48};
  block.a = {.data = a.bits.data(), .line = 64};
  block.b = {.data = b.bits.data(), .line = 48};
  block.c_half = false;
  half_gemm(block);
  block.c = narrow.data();
  block.c_half = true;
  half_gemm(block);
  for (size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(narrow[i], std::bit_cast<uint16_t>(BFloat16(wide[i])));
}

}  // namespace
}  // namespace dais::cpu
