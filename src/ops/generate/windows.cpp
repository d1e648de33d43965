#include "ops/generate/windows.h"

#include <cmath>
#include <numbers>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elements.h"
#include "ops/generate/generate.h"

namespace dais {
namespace {

int64_t whole_input(Call& c, size_t i) {
  c.require(c.in(i).elements() == 1, "an input is not one number");
  return widen<int64_t>(c.in(i))[0];
}

Dim size_or_fresh(Inference& c, size_t i) {
  const auto known = c.known(i);
  return known && known->size() == 1 ? (*known)[0] : c.fresh();
}

template <WindowKind kind>
void infer_window(Inference& c) {
  const DType dtype = c.attrs<WindowOf<kind>>().output_datatype;
  if (!is_float(dtype) && !is_integer(dtype))
    c.fail(std::string(dtype_name(dtype)) + " is not a number type");
  c.set(0, dtype);
  c.set(0, dtype, Dims{size_or_fresh(c, 0)});
}

double window_value(WindowKind kind, double turn) {
  const double angle = 2 * std::numbers::pi * turn;
  switch (kind) {
    case WindowKind::hann: return 0.5 - 0.5 * std::cos(angle);
    case WindowKind::hamming: return 25.0 / 46 - 21.0 / 46 * std::cos(angle);
    case WindowKind::blackman: return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
  }
  return 0;
}

template <WindowKind kind>
void reference_window(Call& c) {
  const auto& attrs = c.attrs<WindowOf<kind>>();
  const int64_t size = whole_input(c, 0);
  c.require(size >= 0, "the size is negative");
  Tensor& y = c.out(0, attrs.output_datatype, Shape{size});
  const double period = static_cast<double>(attrs.periodic ? size : size - 1);
  std::vector<double> values(static_cast<size_t>(size), 1.0);
  // A symmetric window of one point has no period: its only point is the peak.
  if (period > 0)
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = window_value(kind, static_cast<double>(i) / period);
  store_elements(y, 0, 1, size, values.data());
}

template <WindowKind kind>
Op make_window(std::string_view name, std::string_view onnx) {
  return {
      .name = name,
      .attrs = &AttrsOf<WindowOf<kind>>::info,
      .infer = infer_window<kind>,
      .reference = reference_window<kind>,
      .onnx = {{onnx, 17}},
  };
}

double hertz_to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double mel_to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

void infer_mel(Inference& c) {
  const DType dtype = c.attrs<MelWeightMatrix>().output_datatype;
  c.set(0, dtype);
  const Dim bins = size_or_fresh(c, 0);
  const auto length = c.known(1);
  const Dim rows = length && length->size() == 1 ? floordiv((*length)[0], 2) + 1 : c.fresh();
  c.set(0, dtype, Dims{rows, bins});
}

/// Bands are triangles over spectrum bins: up from the band's edge to its centre, and down to the
/// next but one edge; edges lie evenly on the mel scale, rounded down to bins.
void reference_mel(Call& c) {
  const int64_t bands = whole_input(c, 0), length = whole_input(c, 1), rate = whole_input(c, 2);
  c.require(bands >= 0 && bands < (int64_t{1} << 31), "num_mel_bins is out of range");
  c.require(length >= 0, "dft_length is negative");
  c.require(rate > 0, "sample_rate is not positive");
  c.require(c.in(3).elements() == 1 && c.in(4).elements() == 1, "an edge is not one number");
  const double low = hertz_to_mel(c.in(3).to_double()), high = hertz_to_mel(c.in(4).to_double());
  const int64_t bins = length / 2 + 1;
  Tensor& y = c.out(0, c.attrs<MelWeightMatrix>().output_datatype, Shape{bins, bands});
  std::vector<double> weights(static_cast<size_t>(y.elements()), 0);
  auto edge = [&](int64_t i) {
    const double mel = low + (high - low) / static_cast<double>(bands + 2) * static_cast<double>(i);
    return static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * mel_to_hertz(mel) /
                                           static_cast<double>(rate)));
  };
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t left = edge(band), centre = edge(band + 1), right = edge(band + 2);
    c.require(left >= 0 && right <= bins, "an edge lies beyond half the sample rate");
    auto at = [&](int64_t bin) -> double& {
      return weights[static_cast<size_t>(bin * bands + band)];
    };
    for (int64_t bin = left; bin < centre; ++bin)
      at(bin) = static_cast<double>(bin - left) / static_cast<double>(centre - left);
    if (centre < bins) at(centre) = 1;
    for (int64_t bin = centre; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - centre);
  }
  store_elements(y, 0, 1, y.elements(), weights.data());
}

}  // namespace

template <>
const Op HannWindow::op = make_window<WindowKind::hann>("hann_window", "HannWindow");
template <>
const Op HammingWindow::op = make_window<WindowKind::hamming>("hamming_window", "HammingWindow");
template <>
const Op BlackmanWindow::op = make_window<WindowKind::blackman>("blackman_window",
                                                                "BlackmanWindow");

const Op MelWeightMatrix::op{
    .name = "mel_weight_matrix",
    .attrs = &AttrsOf<MelWeightMatrix>::info,
    .infer = infer_mel,
    .reference = reference_mel,
    .onnx = {{"MelWeightMatrix", 17}},
};

void define_windows(OpRegistry& registry) {
  for (const Op* op :
       {&HannWindow::op, &HammingWindow::op, &BlackmanWindow::op, &MelWeightMatrix::op})
    registry.add(*op);
}

}  // namespace dais
