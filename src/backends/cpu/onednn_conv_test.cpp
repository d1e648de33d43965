#include "backends/cpu/onednn_testing.h"
#include "base/threads.h"

namespace dais::onednn::testing {
namespace {

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
  expect_window(desc, *created.primitive, epilogue, src, weights,
                group_in * count(desc.window.kernel), sum);
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

}  // namespace
}  // namespace dais::onednn::testing
