#include "backends/cpu/peaks.h"

#include <gtest/gtest.h>

#include "backends/cpu/isa.h"

namespace dais::cpu {
namespace {

Peaks example() {
  Peaks peaks;
  peaks.f32 = {100, true};
  peaks.f64 = {50, false};
  peaks.bf16 = {1200, true};
  peaks.i8 = {400, true};
  peaks.f32_in_parts = {200, false};
  peaks.copies = {{{10, 40}, {100, 20}, {1000, 10}}};
  return peaks;
}

TEST(Peaks, TheSlowerOfWorkAndTrafficBinds) {
  const Peaks peaks = example();
  EXPECT_DOUBLE_EQ(peaks.bound(1000, 10, DType::f32, 20), 10);
  EXPECT_DOUBLE_EQ(peaks.bound(10, 2000, DType::f32, 500), 200);
  EXPECT_DOUBLE_EQ(peaks.bound(0, 50, DType::f32, 10), 2.5);
  EXPECT_DOUBLE_EQ(peaks.bound(0, 0, DType::f32, 10), 0);
}

TEST(Peaks, EachTypeHasItsRate) {
  const Peaks peaks = example();
  EXPECT_DOUBLE_EQ(peaks.bound(1000, 0, DType::f64, 30), 20);
  EXPECT_DOUBLE_EQ(peaks.bound(1200, 0, DType::bf16, 30), 1);
  EXPECT_DOUBLE_EQ(peaks.bound(1000, 0, DType::u8, 30), 2.5);
  EXPECT_DOUBLE_EQ(peaks.bound(1000, 0, DType::f16, 30), 10);
}

TEST(Peaks, ProductsTooFastForVectorsRanOnTiles) {
  EXPECT_DOUBLE_EQ(example().bound(1000, 0, DType::f32, 8), 5);
  Peaks without = example();
  without.f32_in_parts = {};
  EXPECT_DOUBLE_EQ(without.bound(1000, 0, DType::f32, 8), 10);
}

TEST(Peaks, BandwidthFallsWithTheFootprint) {
  const Peaks peaks = example();
  EXPECT_DOUBLE_EQ(peaks.bandwidth(10), 40);
  EXPECT_DOUBLE_EQ(peaks.bandwidth(11), 20);
  EXPECT_DOUBLE_EQ(peaks.bandwidth(5000), 10);
}

TEST(Peaks, MeasuredOnesArePositive) {
  const Peaks peaks = measure_peaks(isa(), 1);
  EXPECT_TRUE(peaks.f32.measured);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8})
    EXPECT_GT(peaks.rate(dtype).per_second, 1e8);
  for (const auto& copy : peaks.copies) EXPECT_GT(copy.per_second, 1e8);
}

}  // namespace
}  // namespace dais::cpu
