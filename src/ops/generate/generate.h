#pragma once

#include "ir/op.h"

namespace dais {

/// (shape: i64 list): a tensor filled with one value, f32 zero when none is given.
struct ConstantOfShape {
  Tensor value = {};  ///< one element
  static constexpr auto fields = std::tuple{field("value", &ConstantOfShape::value)};
  static const Op op;
};

/// (start, limit, delta: scalars of one type): start + i * delta up to but without the limit.
struct Range {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (x: matrix): ones on the k-th diagonal of a matrix of x's shape.
struct EyeLike {
  DType dtype = DType::undefined;  ///< undefined: that of x
  int64_t k = 0;
  static constexpr auto fields =
      std::tuple{field("dtype", &EyeLike::dtype), field("k", &EyeLike::k)};
  static const Op op;
};

/// (indices, depth, values: [off, on]): a new axis of size depth that holds `on` at the index.
/// Negative indices count from the end; those out of range leave their whole slice off.
struct OneHot {
  int64_t axis = -1;
  static constexpr auto fields = std::tuple{field("axis", &OneHot::axis)};
  static const Op op;
};

/// (size: scalar): a window function of that many points, periodic or symmetric.
enum class WindowKind : uint8_t { hann, hamming, blackman };
template <WindowKind kind>
struct WindowOf {
  DType output_datatype = DType::f32;
  bool periodic = true;
  static constexpr auto fields = std::tuple{field("output_datatype", &WindowOf::output_datatype),
                                            field("periodic", &WindowOf::periodic)};
  static const Op op;
};
using HannWindow = WindowOf<WindowKind::hann>;
using HammingWindow = WindowOf<WindowKind::hamming>;
using BlackmanWindow = WindowOf<WindowKind::blackman>;
template <>
const Op HannWindow::op;
template <>
const Op HammingWindow::op;
template <>
const Op BlackmanWindow::op;

/// (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz): the matrix
/// [dft_length / 2 + 1, num_mel_bins] that turns a spectrum into mel bands.
struct MelWeightMatrix {
  DType output_datatype = DType::f32;
  static constexpr auto fields =
      std::tuple{field("output_datatype", &MelWeightMatrix::output_datatype)};
  static const Op op;
};

}  // namespace dais
