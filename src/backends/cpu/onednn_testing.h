#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "backends/cpu/isa.h"
#include "backends/cpu/onednn.h"

// What the tests of every primitive share: plain loops in double precision over row-major copies.

namespace dais::onednn::testing {

using Dims = std::vector<int64_t>;

inline int64_t count(const Dims& dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

/// Values in row-major order, and their bytes as oneDNN gets them.
struct Tensor {
  Dims dims;
  Data data = Data::f32;
  std::vector<double> values;

  double& at(const Dims& index) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) offset = offset * dims[axis] + index[axis];
    return values[static_cast<size_t>(offset)];
  }
};

inline float round_to_bf16(double value) {
  float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
  std::memcpy(&single, &bits, 4);
  return single;
}

inline double nearest_value(double value, Data data) {
  switch (data) {
    case Data::bf16: return round_to_bf16(value);
    case Data::s8: return std::clamp(std::nearbyint(value), -128.0, 127.0);
    case Data::u8: return std::clamp(std::nearbyint(value), 0.0, 255.0);
    case Data::s32: return std::nearbyint(value);
    default: return static_cast<float>(value);
  }
}

/// Deterministic values: integers over the range of small types, else about [-1, 1).
inline Tensor filled(const Dims& dims, Data data, uint32_t seed) {
  Tensor out{dims, data, std::vector<double>(static_cast<size_t>(count(dims)))};
  uint32_t state = seed * 2654435761U + 1;
  for (double& value : out.values) {
    state = state * 1664525U + 1013904223U;
    const double unit = (state >> 8) / 16777216.0;
    if (data == Data::s8) value = std::floor(unit * 256) - 128;
    if (data == Data::u8) value = std::floor(unit * 256);
    if (data == Data::s32) value = std::floor(unit * 2000) - 1000;
    if (data == Data::f32 || data == Data::bf16) value = nearest_value(unit * 2 - 1, data);
  }
  return out;
}

template <typename Visit>
void for_each_index(const Dims& dims, Visit&& visit) {
  Dims index(dims.size(), 0);
  for (int64_t left = count(dims); left > 0; --left) {
    visit(index);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

inline void store(std::byte* at, double value, Data data) {
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (data) {
    case Data::f32: return put(static_cast<float>(value));
    case Data::s32: return put(static_cast<int32_t>(value));
    case Data::s8: return put(static_cast<int8_t>(value));
    case Data::u8: return put(static_cast<uint8_t>(value));
    default: break;
  }
  const float single = round_to_bf16(value);
  std::memcpy(at, reinterpret_cast<const std::byte*>(&single) + 2, 2);
}

inline double load(const std::byte* at, Data data) {
  const auto get = [&](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return static_cast<double>(typed);
  };
  switch (data) {
    case Data::f32: return get(float{});
    case Data::s32: return get(int32_t{});
    case Data::s8: return get(int8_t{});
    case Data::u8: return get(uint8_t{});
    default: break;
  }
  float single = 0;
  std::memcpy(reinterpret_cast<std::byte*>(&single) + 2, at, 2);
  return single;
}

inline Dims dense_strides(const Dims& dims, bool channels_last = false) {
  Dims strides(dims.size());
  int64_t step = 1;
  if (channels_last) strides[1] = step, step *= dims[1];
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (channels_last && axis == 1) continue;
    strides[axis] = step;
    step *= dims[axis];
  }
  return strides;
}

inline std::vector<std::byte> bytes_of(Tensor tensor, const Dims& strides) {
  int64_t last = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis)
    last += (tensor.dims[axis] - 1) * strides[axis];
  const size_t size = data_bytes(tensor.data);
  std::vector<std::byte> out(static_cast<size_t>(last + 1) * size);
  for_each_index(tensor.dims, [&](const Dims& index) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis) offset += index[axis] * strides[axis];
    store(&out[static_cast<size_t>(offset) * size], tensor.at(index), tensor.data);
  });
  return out;
}

inline double eltwise(const PostOp& op, double x) {
  const double a = op.alpha, b = op.beta;
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto soft_plus = [](double v) { return std::log1p(std::exp(v)); };
  switch (op.eltwise) {
    case Eltwise::relu: return x > 0 ? x : a * x;
    case Eltwise::clip: return std::min(std::max(x, a), b);
    case Eltwise::linear: return a * x + b;
    case Eltwise::tanh: return std::tanh(x);
    case Eltwise::logistic: return logistic(x);
    case Eltwise::gelu_erf: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Eltwise::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Eltwise::swish: return x * logistic(a * x);
    case Eltwise::hard_sigmoid: return std::min(std::max(a * x + b, 0.0), 1.0);
    case Eltwise::hard_swish: return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case Eltwise::elu: return x > 0 ? x : a * std::expm1(x);
    case Eltwise::soft_plus: return soft_plus(x);
    case Eltwise::mish: return x * std::tanh(soft_plus(x));
    case Eltwise::abs: return std::abs(x);
    case Eltwise::square: return x * x;
    case Eltwise::sqrt: return std::sqrt(x);
    case Eltwise::exp: return std::exp(x);
    case Eltwise::round: return std::nearbyint(x);
  }
  return x;
}

/// The operands of an epilogue, and what it makes of a tensor of exact sums.
struct EpilogueCase {
  const Epilogue& epilogue;
  Data data;
  size_t channel_axis;
  Dims dims;
  Tensor bias, before;
  std::vector<Tensor> operands;

  EpilogueCase(const Epilogue& described, Data dst, const Dims& dst_dims, size_t axis)
      : epilogue(described), data(dst), channel_axis(axis), dims(dst_dims) {
    bias = filled({dims[axis]}, epilogue.bias_data, 5);
    before = filled(dims, dst, 6);
    for (const PostOp& op : epilogue.post_ops) {
      if (!op.reads_tensor()) continue;
      Dims shape = op.dims.empty() ? dims : op.dims;
      if (op.per_channel) shape.assign(dims.size(), 1), shape[axis] = dims[axis];
      operands.push_back(filled(shape, op.data, 7 + static_cast<uint32_t>(operands.size())));
    }
  }

  double expected(double sum, const Dims& index) {
    const auto channel = static_cast<size_t>(index[channel_axis]);
    double x = sum + (epilogue.bias ? bias.values[channel] : 0);
    const auto& scales = epilogue.scales;
    if (!scales.empty()) x = static_cast<float>(x) * scales[scales.size() == 1 ? 0 : channel];
    size_t operand = 0;
    for (const PostOp& op : epilogue.post_ops) {
      if (op.kind == PostOp::Kind::eltwise) x = eltwise(op, x);
      if (op.kind == PostOp::Kind::sum) x += op.alpha * before.at(index);
      if (!op.reads_tensor()) continue;
      Tensor& tensor = operands[operand++];
      Dims place = index;
      for (size_t axis = 0; axis < place.size(); ++axis)
        if (tensor.dims[axis] == 1) place[axis] = 0;
      x = op.kind == PostOp::Kind::add ? x + tensor.at(place) : x * tensor.at(place);
    }
    const bool integer = data != Data::f32 && data != Data::bf16;
    return nearest_value((integer ? std::nearbyint(x) : x) + epilogue.dst_zero_point, data);
  }
};

/// Runs the primitive and compares each element with `sum(index)` put through the epilogue.
/// `weight` bounds the rounding error: the largest sum of absolute products.
inline void expect_run(Primitive& primitive, EpilogueCase& epilogue,
                       const std::vector<std::byte>& src, const std::vector<std::byte>& weights,
                       const Dims& dst_strides, const std::vector<Dims>& operand_strides,
                       double weight, const std::function<double(const Dims&)>& sum) {
  std::vector<std::byte> dst = bytes_of(epilogue.before, dst_strides);
  std::vector<std::byte> scratch(primitive.scratch_bytes() + 64);
  const std::vector<std::byte> bias = bytes_of(epilogue.bias, {1});
  std::vector<std::vector<std::byte>> operands;
  std::vector<const void*> post;
  for (size_t index = 0; index < epilogue.operands.size(); ++index) {
    operands.push_back(bytes_of(epilogue.operands[index], operand_strides[index]));
    post.push_back(operands.back().data());
  }
  std::shared_ptr<Packed> packed;
  Tensors tensors;
  tensors.src = src.data();
  if (primitive.packs()) {
    packed = primitive.pack(weights.data());
    EXPECT_TRUE(primitive.accepts(*packed));
    EXPECT_TRUE(primitive.repack(weights.data(), *packed));
  }
  tensors.packed = packed.get();
  tensors.weights = weights.data();
  tensors.bias = epilogue.epilogue.bias ? bias.data() : nullptr;
  tensors.dst = dst.data();
  tensors.post = post;
  tensors.scratch =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  ASSERT_TRUE(primitive.run(tensors));

  const Data data = epilogue.data;
  const bool integer = data != Data::f32 && data != Data::bf16;
  const double slack = integer ? 0 : (data == Data::bf16 ? 1.0 / 128 : 4e-7) * weight;
  int bad = 0;
  for_each_index(epilogue.dims, [&](const Dims& index) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * dst_strides[axis];
    const double got = load(&dst[static_cast<size_t>(offset) * data_bytes(data)], data);
    const double want = epilogue.expected(sum(index), index);
    if (!(std::abs(got - want) <= slack * std::max(1.0, std::abs(want))) && ++bad < 4)
      ADD_FAILURE() << primitive.implementation() << ": got " << got << ", want " << want;
  });
  EXPECT_EQ(bad, 0) << primitive.implementation();
}

/// oneDNN fuses fewer post-ops below AVX-512; rows then run them by themselves.
template <typename Desc>
bool may_lack(const Desc& desc) {
  return cpu::isa() < Isa::avx512 && !refusal(desc).empty();
}

inline std::vector<Dims> operand_strides(const EpilogueCase& epilogue, bool channels_last) {
  std::vector<Dims> out;
  for (const Tensor& operand : epilogue.operands)
    out.push_back(dense_strides(operand.dims, channels_last));
  return out;
}

inline Dims activation(int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims{batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

#define SKIP_WITHOUT_ONEDNN() \
  if (!unavailable().empty()) GTEST_SKIP() << unavailable()

/// The same for a convolution, forward or backward, of `taps` products per element.
template <typename Desc>
void expect_window(const Desc& desc, Primitive& primitive, EpilogueCase& epilogue,
                   const Tensor& src, const Tensor& weights, int64_t taps,
                   const std::function<double(const Dims&)>& sum) {
  expect_run(primitive, epilogue, bytes_of(src, dense_strides(src.dims, desc.channels_last)),
             bytes_of(weights, dense_strides(weights.dims)),
             dense_strides(epilogue.dims, desc.channels_last),
             operand_strides(epilogue, desc.channels_last), static_cast<double>(taps) + 8, sum);
}

}  // namespace dais::onednn::testing
