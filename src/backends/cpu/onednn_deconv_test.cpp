#include "backends/cpu/onednn_testing.h"

namespace dais::onednn::testing {
namespace {

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
  expect_window(desc, *created.primitive, epilogue, src, weights,
                group_in * count(desc.window.kernel), sum);
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

}  // namespace
}  // namespace dais::onednn::testing
