// Fourier transforms on the device: every length by either way, in the CPU's accuracy.
#include "ops/stft/stft.h"
#include "watched_row.h"

namespace dais {
namespace {

const RowTolerance kDouble{1e-12, 1e-13}, kFloat{1e-6, 1e-6};
Tensor number(int64_t value) { return Tensor::ints(std::vector<int64_t>{value}); }

TEST(SignalRows, EveryLengthBothWays) {
  for (const int64_t length : {1, 2, 3, 4, 5, 7, 8, 12, 17, 31, 64, 100})
    for (const bool inverse : {false, true}) {
      const Tensor x = sample<double>({3, length, 2});
      watch_row(Dft{.inverse = inverse}, {x}, {.tolerance = kDouble});
      watch_row(Dft{.inverse = inverse}, {narrowed(x, DType::f32)}, {.tolerance = kFloat});
    }
}

TEST(SignalRows, OneSided) {
  for (const int64_t length : {1, 6, 8, 9}) {
    watch_row(Dft{.onesided = true}, {sample<double>({5, length, 1})}, {.tolerance = kDouble});
    watch_row(Dft{.inverse = true, .onesided = true},
              {sample<double>({2, length / 2 + 1, 2}), number(length)},
              {.tolerance = kDouble, .constants = {1}});
  }
  watch_row(Dft{.inverse = true, .onesided = true}, {sample<double>({2, 5, 2})},
            {.tolerance = kDouble});
}

/// Cut, filled with zeros, and along another axis.
TEST(SignalRows, LengthsAndAxes) {
  const Tensor x = sample<float>({2, 6, 5, 2});
  for (const int64_t length : {4, 6, 16})
    for (const int64_t axis : {0, 1, -2})
      watch_row(Dft{}, {x, number(length), number(axis)},
                {.tolerance = kFloat, .constants = {1, 2}});
}

TEST(SignalRows, NeighboursAreReadAndWrittenTogether) {
  watch_row(Dft{}, {sample<float>({4, 256, 2})}, {.tolerance = kFloat}).expect_coalesced_writes();
  watch_row(Dft{}, {sample<float>({64, 32, 1}), {}, number(0)},
            {.tolerance = kFloat, .constants = {2}})
      .expect_coalesced_writes();
}

TEST(SignalRows, Frames) {
  const Tensor signal = sample<float>({2, 128, 1}), window = sample<float>({16}, 1);
  for (const bool onesided : {false, true}) {
    watch_row(Stft{.onesided = onesided}, {signal, number(8), window},
              {.tolerance = kFloat, .constants = {1}});
    watch_row(Stft{.onesided = onesided}, {signal, number(5), {}, number(20)},
              {.tolerance = kFloat, .constants = {1, 3}});
    watch_row(Stft{.onesided = onesided}, {signal, number(5), window, number(20)},
              {.tolerance = kFloat, .constants = {1, 3}});
  }
  watch_row(Stft{.onesided = false}, {sample<double>({1, 40, 2}), number(3), {}, number(9)},
            {.tolerance = kDouble, .constants = {1, 3}});
}

}  // namespace
}  // namespace dais
