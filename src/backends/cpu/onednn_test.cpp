#include "backends/cpu/onednn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "backends/cpu/isa.h"
#include "base/threads.h"

// Every primitive against plain loops in double precision over row-major copies.

namespace dais::onednn {
namespace {

using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
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

float round_to_bf16(double value) {
  float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
  std::memcpy(&single, &bits, 4);
  return single;
}

double nearest_value(double value, Data data) {
  switch (data) {
    case Data::bf16: return round_to_bf16(value);
    case Data::s8: return std::clamp(std::nearbyint(value), -128.0, 127.0);
    case Data::u8: return std::clamp(std::nearbyint(value), 0.0, 255.0);
    case Data::s32: return std::nearbyint(value);
    default: return static_cast<float>(value);
  }
}

/// Deterministic values: integers over the range of small types, else about [-1, 1).
Tensor filled(const Dims& dims, Data data, uint32_t seed) {
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

void store(std::byte* at, double value, Data data) {
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

double load(const std::byte* at, Data data) {
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

Dims dense_strides(const Dims& dims, bool channels_last = false) {
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

std::vector<std::byte> bytes_of(Tensor tensor, const Dims& strides) {
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

double eltwise(const PostOp& op, double x) {
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
void expect_run(Primitive& primitive, EpilogueCase& epilogue, const std::vector<std::byte>& src,
                const std::vector<std::byte>& weights, const Dims& dst_strides,
                const std::vector<Dims>& operand_strides, double weight,
                const std::function<double(const Dims&)>& sum) {
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

std::vector<Dims> operand_strides(const EpilogueCase& epilogue, bool channels_last) {
  std::vector<Dims> out;
  for (const Tensor& operand : epilogue.operands)
    out.push_back(dense_strides(operand.dims, channels_last));
  return out;
}

Dims activation(int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims{batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

#define SKIP_WITHOUT_ONEDNN() \
  if (!unavailable().empty()) GTEST_SKIP() << unavailable()

void expect_conv(const ConvDesc& desc) {
  const Created created = create(desc);
  ASSERT_TRUE(created) << created.reason;
  EXPECT_EQ(refusal(desc), "");
  Tensor src = filled(activation(desc.batch, desc.in_channels, desc.in_spatial), desc.src, 1);
  const int64_t group_in = desc.in_channels / desc.groups;
  const int64_t group_out = desc.out_channels / desc.groups;
  Tensor weights =
      filled(activation(desc.out_channels, group_in, desc.window.kernel), desc.weights, 2);
  const Dims dst = activation(desc.batch, desc.out_channels, desc.out_spatial());
  EpilogueCase epilogue(desc.epilogue, desc.dst, dst, 1);
  const auto sum = [&](const Dims& out) {
    double total = 0;
    for_each_index(activation(1, group_in, desc.window.kernel), [&](const Dims& tap) {
      Dims in = out, weight = tap;
      in[1] = out[1] / group_out * group_in + tap[1];
      weight[0] = out[1];
      for (size_t axis = 2; axis < in.size(); ++axis) {
        in[axis] = out[axis] * desc.window.strides[axis - 2] - desc.window.pads_begin[axis - 2] +
                   tap[axis] * desc.window.dilations[axis - 2];
        if (in[axis] < 0 || in[axis] >= desc.in_spatial[axis - 2]) return;
      }
      total += (src.at(in) - desc.src_zero_point) * weights.at(weight);
    });
    return total;
  };
  expect_run(*created.primitive, epilogue,
             bytes_of(src, dense_strides(src.dims, desc.channels_last)),
             bytes_of(weights, dense_strides(weights.dims)), dense_strides(dst, desc.channels_last),
             operand_strides(epilogue, desc.channels_last),
             static_cast<double>(group_in * count(desc.window.kernel)) + 8, sum);
}

ConvDesc conv(int64_t in, int64_t out, Dims spatial, Dims kernel) {
  ConvDesc desc;
  desc.batch = 2;
  desc.in_channels = in;
  desc.out_channels = out;
  const Dims ones(spatial.size(), 1), zeros(spatial.size(), 0);
  desc.in_spatial = std::move(spatial);
  desc.window = {std::move(kernel), ones, ones, zeros, zeros};
  desc.channels_last = true;
  return desc;
}

void set_data(ConvDesc& desc, Data src, Data weights, Data dst) {
  desc.src = src;
  desc.weights = weights;
  desc.dst = dst;
}

TEST(OnednnConv, Dimensions) {
  SKIP_WITHOUT_ONEDNN();
  expect_conv(conv(16, 32, {19}, {3}));
  expect_conv(conv(16, 32, {9, 11}, {3, 3}));
  expect_conv(conv(16, 32, {5, 6, 7}, {2, 3, 2}));
  expect_conv(conv(3, 20, {13, 13}, {5, 5}));
}

TEST(OnednnConv, RowMajor) {
  SKIP_WITHOUT_ONEDNN();
  for (ConvDesc desc : {conv(16, 32, {9, 11}, {3, 3}), conv(3, 16, {12, 9}, {7, 7}),
                        conv(24, 8, {10, 6}, {1, 1})}) {
    desc.channels_last = false;
    if (create(desc)) expect_conv(desc);
  }
}

TEST(OnednnConv, WindowsAndGroups) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc strided = conv(16, 16, {11, 14}, {3, 3});
  strided.window.strides = {2, 3};
  strided.window.pads_begin = {0, 1};
  strided.window.pads_end = {2, 0};
  expect_conv(strided);

  ConvDesc dilated = conv(32, 16, {12, 12}, {3, 2});
  dilated.window.dilations = {2, 3};
  dilated.window.pads_begin = {2, 1};
  dilated.window.pads_end = {1, 2};
  expect_conv(dilated);

  ConvDesc grouped = conv(32, 64, {7, 8}, {3, 3});
  grouped.groups = 2;
  expect_conv(grouped);

  ConvDesc depthwise = conv(32, 32, {9, 8}, {3, 3});
  depthwise.groups = 32;
  depthwise.window.pads_begin = depthwise.window.pads_end = {1, 1};
  expect_conv(depthwise);
}

TEST(OnednnConv, PostOps) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc desc = conv(16, 32, {6, 6}, {3, 3});
  desc.epilogue.bias = true;
  desc.epilogue.post_ops = {PostOp::sum(), PostOp::apply(Eltwise::relu)};
  expect_conv(desc);
  desc.epilogue.post_ops[0].alpha = 0.5F;
  if (!may_lack(desc)) expect_conv(desc);
  desc.epilogue.post_ops = {PostOp::mul_per_channel(), PostOp::add_per_channel(),
                            PostOp::add(Data::f32), PostOp::apply(Eltwise::clip, 0, 6)};
  if (!may_lack(desc)) expect_conv(desc);
  desc.window.kernel = {1, 1};
  for (const PostOp& op :
       {PostOp::apply(Eltwise::relu, 0.1F), PostOp::apply(Eltwise::linear, 2, -1),
        PostOp::apply(Eltwise::tanh), PostOp::apply(Eltwise::logistic),
        PostOp::apply(Eltwise::gelu_erf), PostOp::apply(Eltwise::gelu_tanh),
        PostOp::apply(Eltwise::swish, 1), PostOp::apply(Eltwise::hard_sigmoid, 0.2F, 0.5F),
        PostOp::apply(Eltwise::hard_swish), PostOp::apply(Eltwise::elu, 0.7F),
        PostOp::apply(Eltwise::soft_plus), PostOp::apply(Eltwise::mish),
        PostOp::apply(Eltwise::abs), PostOp::apply(Eltwise::square), PostOp::apply(Eltwise::exp)}) {
    desc.epilogue.post_ops = {op};
    SCOPED_TRACE(static_cast<int>(op.eltwise));
    if (!may_lack(desc)) expect_conv(desc);
  }
}

TEST(OnednnConv, Bfloat16) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc desc = conv(32, 32, {7, 7}, {3, 3});
  set_data(desc, Data::bf16, Data::bf16, Data::f32);
  desc.epilogue.bias = true;
  desc.window.pads_begin = desc.window.pads_end = {1, 1};
  if (const Created created = create(desc); !created) GTEST_SKIP() << created.reason;
  expect_conv(desc);
  desc.dst = Data::bf16;
  desc.epilogue.post_ops = {PostOp::apply(Eltwise::relu)};
  expect_conv(desc);
}

TEST(OnednnConv, Bytes) {
  SKIP_WITHOUT_ONEDNN();
  if (cpu::isa() < Isa::avx512) {
    ConvDesc refused = conv(16, 16, {5, 5}, {3, 3});
    set_data(refused, Data::u8, Data::s8, Data::s32);
    EXPECT_NE(refusal(refused), "");
    return;
  }
  for (const Data src : {Data::u8, Data::s8}) {
    for (const Data dst : {Data::s32, Data::f32, Data::u8, Data::s8}) {
      ConvDesc desc = conv(32, 48, {4, 5}, {3, 3});
      set_data(desc, src, Data::s8, dst);
      desc.window.pads_begin = desc.window.pads_end = {1, 1};
      expect_conv(desc);
      if (dst == Data::s32) continue;
      desc.epilogue.bias = true;
      desc.epilogue.bias_data = Data::s32;
      desc.epilogue.scales = {0.0009765625F};
      if (dst != Data::f32) desc.epilogue.dst_zero_point = dst == Data::u8 ? 127 : -3;
      expect_conv(desc);
      desc.epilogue.scales.assign(48, 0.0F);
      for (size_t channel = 0; channel < 48; ++channel)
        desc.epilogue.scales[channel] = 0.0004F + 0.00001F * static_cast<float>(channel);
      desc.epilogue.post_ops = {PostOp::apply(Eltwise::relu)};
      expect_conv(desc);
      desc.groups = 48 / 3;
      desc.in_channels = desc.out_channels = 48;
      expect_conv(desc);
    }
  }
}

TEST(OnednnConv, SourceZeroPoint) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc desc = conv(32, 16, {6, 6}, {3, 3});
  set_data(desc, Data::u8, Data::s8, Data::s32);
  desc.src_zero_point = 121;
  desc.window.pads_begin = desc.window.pads_end = {1, 1};
  if (const Created created = create(desc); !created) GTEST_SKIP() << created.reason;
  expect_conv(desc);
}

TEST(OnednnConv, Winograd) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc desc = conv(64, 64, {6, 8}, {3, 3});
  desc.batch = 1;
  desc.allow_winograd = true;
  desc.window.pads_begin = desc.window.pads_end = {1, 1};
  desc.epilogue.bias = true;
  desc.epilogue.post_ops = {PostOp::apply(Eltwise::relu)};
  expect_conv(desc);
  desc.out_channels = 50;
  desc.channels_last = false;
  expect_conv(desc);
  desc.channels_last = true;
  desc.epilogue.post_ops = {PostOp::sum(), PostOp::apply(Eltwise::relu)};
  const Created summed = create(desc);
  ASSERT_TRUE(summed) << summed.reason;
  EXPECT_EQ(summed.primitive->implementation().find("wino"), std::string::npos);
}

TEST(OnednnConv, SharesWeights) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc desc = conv(32, 32, {8, 8}, {3, 3});
  const Created first = create(desc);
  ASSERT_TRUE(first) << first.reason;
  const std::vector<float> weights(32 * 32 * 9, 0.5F);
  const auto packed = first.primitive->pack(weights.data());
  EXPECT_GE(packed->bytes(), weights.size() * sizeof(float));
  desc.in_spatial = {30, 20};
  desc.share = packed.get();
  const Created second = create(desc);
  ASSERT_TRUE(second) << second.reason;
  EXPECT_TRUE(second.primitive->accepts(*packed));
}

TEST(OnednnConv, RefusesWithReason) {
  SKIP_WITHOUT_ONEDNN();
  ConvDesc empty = conv(16, 16, {2, 2}, {3, 3});
  EXPECT_EQ(refusal(empty), "an operand is empty");
  ConvDesc mixed = conv(16, 16, {5, 5}, {3, 3});
  mixed.src = Data::u8;
  EXPECT_FALSE(create(mixed));
}

TEST(OnednnConv, KeepsItsTeam) {
  SKIP_WITHOUT_ONEDNN();
  const int before = team_size();
  const ConvDesc desc = conv(16, 32, {9, 9}, {3, 3});
  set_team_size(1);
  const Created created = create(desc);
  ASSERT_TRUE(created) << created.reason;
  set_team_size(2);
  expect_conv(desc);
  EXPECT_EQ(team_size(), 2);
  set_team_size(before);
}

void expect_deconv(const DeconvDesc& desc) {
  const Created created = create(desc);
  ASSERT_TRUE(created) << created.reason;
  Tensor src = filled(activation(desc.batch, desc.in_channels, desc.in_spatial), desc.src, 1);
  const int64_t group_in = desc.in_channels / desc.groups;
  const int64_t group_out = desc.out_channels / desc.groups;
  Tensor weights =
      filled(activation(desc.in_channels, group_out, desc.window.kernel), desc.weights, 2);
  const Dims dst = activation(desc.batch, desc.out_channels, desc.out_spatial);
  EpilogueCase epilogue(desc.epilogue, desc.dst, dst, 1);
  const auto sum = [&](const Dims& out) {
    double total = 0;
    for_each_index(activation(1, group_in, desc.window.kernel), [&](const Dims& tap) {
      Dims in = out, weight = tap;
      in[1] = weight[0] = out[1] / group_out * group_in + tap[1];
      weight[1] = out[1] % group_out;
      for (size_t axis = 2; axis < in.size(); ++axis) {
        const int64_t from = out[axis] + desc.window.pads_begin[axis - 2] -
                             tap[axis] * desc.window.dilations[axis - 2];
        in[axis] = from / desc.window.strides[axis - 2];
        if (from < 0 || from % desc.window.strides[axis - 2] != 0 ||
            in[axis] >= desc.in_spatial[axis - 2])
          return;
      }
      total += src.at(in) * weights.at(weight);
    });
    return total;
  };
  expect_run(*created.primitive, epilogue,
             bytes_of(src, dense_strides(src.dims, desc.channels_last)),
             bytes_of(weights, dense_strides(weights.dims)), dense_strides(dst, desc.channels_last),
             operand_strides(epilogue, desc.channels_last),
             static_cast<double>(group_in * count(desc.window.kernel)) + 8, sum);
}

DeconvDesc deconv(int64_t in, int64_t out, Dims spatial, Dims kernel, Dims strides, Dims dst) {
  DeconvDesc desc;
  desc.batch = 2;
  desc.in_channels = in;
  desc.out_channels = out;
  const Dims ones(spatial.size(), 1), zeros(spatial.size(), 0);
  desc.in_spatial = std::move(spatial);
  desc.out_spatial = std::move(dst);
  desc.window = {std::move(kernel), std::move(strides), ones, zeros, zeros};
  desc.channels_last = true;
  return desc;
}

TEST(OnednnDeconv, AgreesWithLoops) {
  SKIP_WITHOUT_ONEDNN();
  DeconvDesc plain = deconv(16, 32, {5, 6}, {3, 3}, {2, 2}, {11, 13});
  plain.epilogue.bias = true;
  plain.epilogue.post_ops = {PostOp::apply(Eltwise::relu)};
  expect_deconv(plain);
  DeconvDesc padded = deconv(32, 16, {5, 5}, {3, 3}, {2, 2}, {10, 9});
  padded.window.pads_begin = {1, 1};
  expect_deconv(padded);
  DeconvDesc grouped = deconv(32, 32, {4, 5}, {2, 2}, {2, 2}, {8, 10});
  grouped.groups = 2;
  expect_deconv(grouped);
  expect_deconv(deconv(16, 16, {9}, {4}, {2}, {20}));
}

/// Empty strides in a MatrixDesc, spelt out.
Dims strides_of(const MatrixDesc& matrix, const Dims& dims) {
  if (!matrix.strides.empty()) return matrix.strides;
  Dims strides = dense_strides(dims);
  if (matrix.transposed) {
    strides[strides.size() - 2] = 1;
    strides[strides.size() - 1] = dims[dims.size() - 2];
  }
  return strides;
}

void expect_matmul(const MatmulDesc& desc) {
  const Created created = create(desc);
  ASSERT_TRUE(created) << created.reason;
  const auto dims_of = [&](const MatrixDesc& matrix, int64_t rows, int64_t columns) {
    Dims dims = matrix.batch.empty() ? Dims(desc.c.batch.size(), 1) : matrix.batch;
    dims.push_back(rows);
    dims.push_back(columns);
    return dims;
  };
  Tensor a = filled(dims_of(desc.a, desc.m, desc.k), desc.a.data, 1);
  Tensor b = filled(dims_of(desc.b, desc.k, desc.n), desc.b.data, 2);
  const Dims c = dims_of(desc.c, desc.m, desc.n);
  EpilogueCase epilogue(desc.epilogue, desc.c.data, c, c.size() - 1);
  const auto sum = [&](const Dims& out) {
    Dims left = out, right = out;
    for (size_t axis = 0; axis + 2 < out.size(); ++axis) {
      if (a.dims[axis] == 1) left[axis] = 0;
      if (b.dims[axis] == 1) right[axis] = 0;
    }
    double total = 0;
    for (int64_t index = 0; index < desc.k; ++index) {
      left[left.size() - 1] = right[right.size() - 2] = index;
      total += (a.at(left) - desc.a.zero_point) * (b.at(right) - desc.b.zero_point);
    }
    return total;
  };
  expect_run(*created.primitive, epilogue, bytes_of(a, strides_of(desc.a, a.dims)),
             bytes_of(b, strides_of(desc.b, b.dims)), strides_of(desc.c, c),
             operand_strides(epilogue, false), static_cast<double>(desc.k) + 8, sum);
}

MatmulDesc matmul(int64_t m, int64_t n, int64_t k) {
  MatmulDesc desc;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

TEST(OnednnMatmul, ShapesAndLayouts) {
  SKIP_WITHOUT_ONEDNN();
  for (const bool pack : {false, true}) {
    for (const bool transposed : {false, true}) {
      MatmulDesc desc = matmul(17, 33, 29);
      desc.pack_b = pack;
      desc.b.transposed = transposed;
      expect_matmul(desc);
      desc.a.transposed = true;
      expect_matmul(desc);
      MatmulDesc row = matmul(1, 65, 40);
      row.pack_b = pack;
      row.b.transposed = transposed;
      expect_matmul(row);
    }
  }
  expect_matmul(matmul(5, 1, 7));
}

TEST(OnednnMatmul, BatchesAndStrides) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc batched = matmul(6, 10, 8);
  batched.a.batch = batched.b.batch = batched.c.batch = {2, 3};
  expect_matmul(batched);
  batched.b.batch = {1, 3};
  expect_matmul(batched);
  batched.b.batch = {};
  expect_matmul(batched);
  // Heads inside rows, as attention has them: (batch, row, head, column) in memory.
  MatmulDesc heads = matmul(6, 6, 8);
  heads.a.batch = heads.b.batch = heads.c.batch = {2, 3};
  heads.a.strides = {6 * 24, 8, 24, 1};
  heads.b.strides = {6 * 24, 8, 1, 24};
  expect_matmul(heads);
}

TEST(OnednnMatmul, PostOps) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc desc = matmul(12, 20, 16);
  desc.pack_b = true;
  desc.epilogue.bias = true;
  desc.epilogue.post_ops = {PostOp::apply(Eltwise::gelu_erf)};
  expect_matmul(desc);
  desc.epilogue.post_ops = {PostOp::mul_per_channel(), PostOp::add(Data::f32)};
  expect_matmul(desc);
  desc.epilogue.post_ops = {PostOp::sum(), PostOp::apply(Eltwise::relu)};
  expect_matmul(desc);
  MatmulDesc masked = matmul(6, 6, 8);
  masked.a.batch = masked.b.batch = masked.c.batch = {2, 3};
  masked.epilogue.post_ops = {PostOp::apply(Eltwise::linear, 0.125F, 0),
                              PostOp::add(Data::f32, {1, 1, 6, 6})};
  if (create(masked)) expect_matmul(masked);
}

TEST(OnednnMatmul, Bytes) {
  SKIP_WITHOUT_ONEDNN();
  if (cpu::isa() < Isa::avx512) GTEST_SKIP() << "no exact 8-bit sums";
  for (const Data src : {Data::u8, Data::s8}) {
    MatmulDesc desc = matmul(19, 32, 48);
    desc.pack_b = true;
    desc.a.data = src;
    desc.b.data = Data::s8;
    desc.c.data = Data::s32;
    expect_matmul(desc);
    desc.c.data = Data::u8;
    desc.epilogue.bias = true;
    desc.epilogue.bias_data = Data::s32;
    desc.epilogue.scales = {0.0009765625F};
    desc.epilogue.dst_zero_point = 101;
    expect_matmul(desc);
    desc.epilogue.scales.assign(32, 0.0005F);
    expect_matmul(desc);
  }
  MatmulDesc zero = matmul(19, 32, 48);
  zero.a.data = Data::u8;
  zero.b.data = Data::s8;
  zero.c.data = Data::s32;
  zero.a.zero_point = 117;
  zero.b.zero_point = -5;
  if (create(zero)) expect_matmul(zero);
}

TEST(OnednnMatmul, Bfloat16) {
  SKIP_WITHOUT_ONEDNN();
  MatmulDesc desc = matmul(33, 48, 64);
  desc.a.data = desc.b.data = Data::bf16;
  desc.pack_b = true;
  if (const Created created = create(desc); !created) GTEST_SKIP() << created.reason;
  expect_matmul(desc);
  desc.c.data = Data::bf16;
  desc.epilogue.bias = true;
  expect_matmul(desc);
}

TEST(OnednnZeroPoint, FoldsIntoBias) {
  const int8_t weights[] = {1, 2, 3, -1, -2, -4};
  const int32_t bias[] = {10, 20};
  EXPECT_EQ(zero_point_bias(weights, 2, 3, bias, 5), (std::vector<int32_t>{-20, 55}));
  EXPECT_EQ(zero_point_bias(weights, 2, 3, nullptr, -1), (std::vector<int32_t>{6, -7}));
}

TEST(CpuIsa, LevelsAreOrdered) {
  EXPECT_LE(cpu::isa(), cpu::machine_isa());
  EXPECT_EQ(isa_name(Isa::avx512), "avx512");
}

}  // namespace
}  // namespace dais::onednn
