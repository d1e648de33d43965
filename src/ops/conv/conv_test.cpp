#include "ops/conv/conv.h"

#include "ops/conv_transpose/conv_transpose.h"
#include "ops/pool/pool.h"
#include "ops/run_op.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

Tensor last(const Tensor& x) { return run_op(Transpose{.perm = {0, 2, 3, 1}}, {x})[0]; }
Tensor first(const Tensor& x) { return run_op(Transpose{.perm = {0, 3, 1, 2}}, {x})[0]; }

/// The op in both layouts on the same data.
template <typename S>
void expect_layouts_agree(S attrs, const Tensor& x, std::vector<Tensor> rest, size_t outputs = 1) {
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), rest.begin(), rest.end());
  const auto rows = run_op(attrs, inputs, outputs);
  attrs.channels_last = true;
  inputs[0] = last(x);
  const auto nhwc = run_op(attrs, inputs, outputs);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(first(nhwc[i]).identical(rows[i]));
}

TEST(Window, ChannelsLastGivesTheSameNumbers) {
  const Tensor x = test_tensor({2, 4, 7, 6});
  expect_layouts_agree(
      Conv{.dilations = {2, 1}, .pads = {1, 0, 2, 1}, .strides = {1, 2}, .group = 2}, x,
      {test_tensor({6, 2, 3, 2}, 2), test_tensor({6}, 3)});
  expect_layouts_agree(ConvTranspose{.strides = {2, 3}, .group = 2}, x,
                       {test_tensor({4, 3, 3, 2}, 2)});
  expect_layouts_agree(MaxPool{.auto_pad = "SAME_LOWER", .kernel_shape = {3, 2}, .strides = {2, 2}},
                       x, {}, 2);
  expect_layouts_agree(AveragePool{.ceil_mode = true,
                                   .count_include_pad = true,
                                   .kernel_shape = {3, 3},
                                   .pads = {1, 1, 1, 1},
                                   .strides = {2, 2}},
                       x, {});
  expect_layouts_agree(LpPool{.kernel_shape = {2, 2}}, x, {});
  expect_layouts_agree(GlobalAveragePool{}, x, {});
  expect_layouts_agree(GlobalMaxPool{}, x, {});
  expect_layouts_agree(GlobalLpPool{.p = 1}, x, {});
}

TEST(Window, SymbolicSizesStayExpressions) {
  Graph graph;
  const Dim n = Dim::symbol("N"), h = Dim::symbol("H");
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{n, 3, h, 8}), "x");
  Value* w = graph.add_constant(test_tensor({5, 3, 3, 3}));
  const Value* y = graph.add(Conv{.pads = {1, 1, 1, 1}, .strides = {2, 2}}, {x, w});
  EXPECT_EQ(*y->type.shape, (Dims{n, 5, floordiv(h - Dim(1), Dim(2)) + Dim(1), 4}));
  const Value* same = graph.add(Conv{.pads = {1, 1, 1, 1}}, {x, w});
  EXPECT_EQ(*same->type.shape, (Dims{n, 5, h, 8}));
}

TEST(Conv, OneFourAndFiveAxes) {
  const Tensor line = run_op(Conv{.dilations = {2}}, {Tensor::of<float>({1, 1, 5}, {1, 2, 3, 4, 5}),
                                                      Tensor::of<float>({1, 1, 2}, {1, 10})})[0];
  EXPECT_TRUE(line.identical(Tensor::of<float>({1, 1, 3}, {31, 42, 53})));
  const Tensor x = test_tensor({1, 2, 3, 3, 3, 3}), w = test_tensor({1, 2, 3, 3, 3, 3}, 2);
  double sum = 0;
  for (int64_t i = 0; i < x.elements(); ++i) sum += x.to_double(i) * w.to_double(i);
  EXPECT_NEAR(run_op(Conv{}, {x, w})[0].to_double(), sum, 1e-4);
}

TEST(Conv, ImpossibleSizesAreErrors) {
  const Tensor x = test_tensor({1, 4, 5, 5});
  EXPECT_THROW(run_op(Conv{}, {x, test_tensor({2, 3, 3, 3})}), Error);
  EXPECT_THROW(run_op(Conv{.group = 3}, {x, test_tensor({3, 1, 3, 3})}), Error);
  EXPECT_THROW(run_op(Conv{.kernel_shape = {2, 3}}, {x, test_tensor({2, 4, 3, 3})}), Error);
  EXPECT_THROW(run_op(Conv{.strides = {0, 1}}, {x, test_tensor({2, 4, 3, 3})}), Error);
  EXPECT_THROW(run_op(Conv{.auto_pad = "SAME"}, {x, test_tensor({2, 4, 3, 3})}), Error);
  // A kernel larger than the padded input has no position.
  EXPECT_EQ(run_op(Conv{}, {x, test_tensor({2, 4, 6, 6})})[0].shape(), (Shape{1, 2, 0, 0}));
}

TEST(QLinearConv, PerChannelScalesInBothLayouts) {
  const Tensor x = Tensor::of<uint8_t>({1, 1, 2, 2}, {10, 20, 30, 255});
  const std::vector<Tensor> rest{Tensor::scalar(0.5f),
                                 Tensor::scalar<uint8_t>(20),
                                 Tensor::of<int8_t>({2, 1, 1, 1}, {4, -3}),
                                 Tensor::of<float>({2}, {0.5f, 2}),
                                 Tensor::of<int8_t>({2}, {0, 1}),
                                 Tensor::scalar(1.0f),
                                 Tensor::scalar<uint8_t>(100),
                                 Tensor::of<int32_t>({2}, {2, 0})};
  expect_layouts_agree(QLinearConv{}, x, rest);
  std::vector<Tensor> all{x};
  all.insert(all.end(), rest.begin(), rest.end());
  // (10-20)*4+2 = -38, * 0.25 = -9.5 -> -10 (even); channel 1: -10 * -4 * 1 = 40.
  const Tensor y = run_op(QLinearConv{}, all)[0];
  EXPECT_EQ(y.data<uint8_t>()[0], 90);
  EXPECT_EQ(y.data<uint8_t>()[4], 140);
  EXPECT_EQ(y.data<uint8_t>()[7], 0);
}

TEST(FusedConv, AddsThenActivates) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 2}, {1, -2}),
               w = Tensor::of<float>({1, 1, 1, 1}, {3});
  const auto y =
      run_import("com.microsoft", "FusedConv", 1, {{"activation", std::string("Relu")}},
                 {x, w, Tensor::of<float>({1}, {1}), Tensor::of<float>({1, 1, 1, 2}, {-1, 9})});
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({1, 1, 1, 2}, {3, 4})));
}

TEST(NhwcConv, TakesWeightsWithChannelsLastToo) {
  const Tensor x = test_tensor({1, 4, 5, 3}), w = test_tensor({2, 3, 2, 2}, 2);
  const Tensor turned = run_op(Transpose{.perm = {0, 2, 3, 1}}, {w})[0];
  const std::vector<std::pair<std::string, AttrValue>> attributes{
      {"kernel_shape", std::vector<int64_t>{2, 2}}};
  const auto y = run_import("com.microsoft", "NhwcConv", 1, attributes, {x, w});
  const auto z = run_import("com.microsoft", "NhwcConv", 1, attributes, {x, turned});
  EXPECT_TRUE(y[0].identical(z[0]));
}

}  // namespace
}  // namespace dais
