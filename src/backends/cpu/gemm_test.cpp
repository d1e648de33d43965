#include "backends/cpu/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/isa.h"
#include "base/threads.h"

namespace dais::cpu {
namespace {

struct Product {
  int64_t rows, columns, depth;
  std::vector<float> a, b, bias;

  Product(int64_t m, int64_t n, int64_t k) : rows(m), columns(n), depth(k) {
    std::mt19937 random(static_cast<unsigned>(m + n + k));
    std::normal_distribution<float> normal;
    for (std::vector<float>* to : {&a, &b, &bias}) {
      to->resize(static_cast<size_t>(to == &a ? m * k : to == &b ? n * k : n));
      for (float& x : *to) x = normal(random);
    }
  }

  /// `tap`: numbers of each tap when rows of A are to be windows; 0: plain rows.
  std::vector<float> run(Isa isa, int threads, int64_t tap = 0) const {
    const int before = team_size();
    set_team_size(threads);
    PageMemory packed(sizeof(float) * static_cast<size_t>(gemm_packed_floats(isa, depth, columns)));
    gemm_pack(isa, b.data(), columns, 1, depth, columns, packed.as<float>());
    std::vector<float> c(static_cast<size_t>(rows * columns));
    const GemmStep steps[] = {{.kind = GemmStep::Kind::column, .operand = bias.data()},
                              {.kind = GemmStep::Kind::scale, .value = 0.5f}};
    GemmBlock block;
    block.a = a.data();
    block.a_row = depth;
    block.c = c.data();
    block.c_row = columns;
    block.rows = rows;
    block.columns = columns;
    block.depth = depth;
    block.steps = steps;
    block.step_count = 2;
    gemm_set_packed(isa, block, packed.as<float>());
    std::vector<int32_t> windows;
    if (tap > 0) {
      for (int64_t t = 0; t < depth / tap; ++t)
        for (int64_t m = 0; m < rows; ++m)
          windows.push_back(static_cast<int32_t>(m * depth + t * tap));
      block.windows = windows.data();
      block.tap = tap;
      gemm_windows(block);
    } else {
      gemm(isa, block);
    }
    set_team_size(before);
    return c;
  }

  double error(const std::vector<float>& c) const {
    double worst = 0;
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < columns; ++n) {
        double sum = bias[static_cast<size_t>(n)];
        for (int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(a[static_cast<size_t>(m * depth + k)]) *
                 b[static_cast<size_t>(k * columns + n)];
        worst = std::max(worst, std::fabs(sum / 2 - c[static_cast<size_t>(m * columns + n)]));
      }
    return worst;
  }
};

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// One strip short of whole, odd depth, one column beyond a panel; more rows than one band; more
/// depth than is held at once; all of these.
const int64_t kSizes[][3] = {{47, 33, 33},    {64, 64, 64},    {130, 100, 97}, {530, 70, 410},
                             {100, 40, 2100}, {1100, 97, 501}, {40, 600, 193}};

TEST(Gemm, ErrsLikeSumsOfF32) {
  for (const auto& size : kSizes) {
    const Product product(size[0], size[1], size[2]);
    // Partial sums have some sqrt(depth), each rounding half a unit of the last of 24 bits.
    const double bound = 0.5 * std::pow(2.0, -24) * static_cast<double>(size[2]) * 8;
    for (int threads : {1, 2})
      EXPECT_LT(product.error(product.run(isa(), threads)), bound)
          << size[0] << " " << size[1] << " " << size[2];
  }
}

TEST(Gemm, TilesErrNoMoreThanFma) {
  if (isa() < Isa::amx) GTEST_SKIP() << "no tile unit";
  for (const auto& size : kSizes) {
    if (size[2] < 400) continue;  // both errors are a few units of the last place
    const Product product(size[0], size[1], size[2]);
    EXPECT_LE(product.error(product.run(Isa::amx, 1)), product.error(product.run(Isa::avx512, 1)))
        << size[0] << " " << size[1] << " " << size[2];
  }
}

TEST(Gemm, SharingOutChangesNoBits) {
  const Product product(300, 700, 500);
  const std::vector<float> first = product.run(isa(), 2);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(same_bits(first, product.run(isa(), 2)));
}

TEST(Gemm, InfinitiesComeOutAsTheLoopsGiveThem) {
  Product product(70, 70, 70);
  product.a[5] = std::numeric_limits<float>::infinity();
  product.b[700] = -std::numeric_limits<float>::infinity();
  product.a[900] = std::numeric_limits<float>::max();
  const Isa loops = std::min(isa(), Isa::avx512);
  EXPECT_TRUE(same_bits(product.run(isa(), 2), product.run(loops, 2)));
}

TEST(Gemm, WindowsAreRows) {
  if (isa() < Isa::amx) GTEST_SKIP() << "no tile unit";
  Product product(130, 70, 192);
  EXPECT_TRUE(same_bits(product.run(isa(), 2, 64), product.run(isa(), 2)));
  product.a[200] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(same_bits(product.run(isa(), 2, 64), product.run(isa(), 2)));
}

}  // namespace
}  // namespace dais::cpu
