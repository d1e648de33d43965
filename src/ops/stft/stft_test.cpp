#include "ops/stft/stft.h"

#include <numbers>

#include "ops/op_testing.h"
#include "ops/stft/fft.h"

namespace dais {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> by_definition(const std::vector<Complex>& x, double sign) {
  const size_t n = x.size();
  std::vector<Complex> out(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i)
      out[k] += x[i] * std::polar(1.0, sign * 2 * std::numbers::pi *
                                           static_cast<double>(k * i % n) / static_cast<double>(n));
  return out;
}

TEST(Fft, EveryLengthAgreesWithTheDefinition) {
  for (size_t n = 1; n <= 67; ++n) {
    std::vector<Complex> x;
    for (size_t i = 0; i < n; ++i)
      x.emplace_back(std::sin(static_cast<double>(i * i)), std::cos(static_cast<double>(3 * i)));
    for (bool inverse : {false, true}) {
      auto y = x;
      Fft(n, inverse).run(y.data());
      const auto expected = by_definition(x, inverse ? 1 : -1);
      for (size_t k = 0; k < n; ++k) EXPECT_LT(std::abs(y[k] - expected[k]), 1e-11) << n;
    }
  }
}

TEST(Dft, OneSidedThereAndBackWithOddLength) {
  const Tensor x = Tensor::of<double>({1, 5, 1}, {1, -2, 3, 0.5, 7});
  const Tensor spectrum = run_onnx("DFT", 20, {x}, {{"onesided", int64_t{1}}})[0];
  EXPECT_EQ(spectrum.shape(), (Shape{1, 3, 2}));
  const Tensor back = run_onnx("DFT", 20, {spectrum, Tensor::scalar<int64_t>(5)},
                               {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}})[0];
  ASSERT_EQ(back.shape(), x.shape());
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(back.data<double>()[i], x.data<double>()[i], 1e-14);
}

TEST(Dft, AxisWasAnAttribute) {
  const Tensor x = Tensor::of<double>({1, 2, 2, 1}, {1, 2, 3, 5});
  EXPECT_TRUE(run_onnx("DFT", 17, {x}, {{"axis", int64_t{1}}})[0].identical(
      Tensor::of<double>({1, 2, 2, 2}, {4, 0, 7, 0, -2, 0, -3, 0})));
  EXPECT_THROW(run_onnx("DFT", 20, {x, {}, Tensor::scalar<int64_t>(-1)}), Error);
}

}  // namespace
}  // namespace dais
