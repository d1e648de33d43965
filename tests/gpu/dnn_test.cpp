// Convolutions by cuDNN behind a library of the tests, and its descriptors by the real library
// where that is installed (which needs no GPU for as far as they go).
#include <gtest/gtest.h>

#include "api/compile.h"
#include "api/device.h"
#include "backends/cuda/backend.h"
#include "fake_dnn.h"
#include "ops/conv/conv.h"
#include "ops/conv/dnn_graph_cuda.h"
#include "ops/elementwise/elementwise.h"
#include "runtime/row_test.h"
#include "runtime/session.h"
#include "stand_in.h"

namespace dais {
namespace {

using cuda::DnnAttribute;
using cuda::DnnKind;
using cuda::DnnStatus;
using cuda::DnnType;
using cuda::StandIn;

class LibraryConvolutions : public testing::Test {
 protected:
  void SetUp() override {
    StandIn::instance().reset();
    StandIn::instance().use_dnn(true);
    cuda::set_fake_dnn_engines(cuda::FakeEngines::all);
    live_ = cuda::fake_dnn_counts().live;
  }
  void TearDown() override {
    for (const auto& complaint : StandIn::instance().take_complaints()) ADD_FAILURE() << complaint;
    for (const auto& left : StandIn::instance().leftovers()) ADD_FAILURE() << "left: " << left;
    EXPECT_EQ(cuda::fake_dnn_counts().live, live_) << "descriptors are left";
  }
  static std::shared_ptr<Backend> open(MatmulPrecision precision = MatmulPrecision::highest) {
    return std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0),
                                               precision);
  }

  /// Runs three times on the device and compares with the CPU. Gives how many convolutions the
  /// library did in each run.
  static int expect_same(const Graph& graph, const std::vector<Datum>& inputs,
                         const RowTolerance& tolerance = {1e-5, 1e-4},
                         MatmulPrecision precision = MatmulPrecision::highest) {
    Session plain(compile(graph.clone()).plan);
    const auto wanted = plain.run(inputs);
    CompileOptions options;
    options.backend = open(precision);
    Session session(compile(graph.clone(), options).plan);
    const int before = cuda::fake_dnn_counts().runs;
    for (int i = 0; i < 3; ++i)
      expect_close(session.run(inputs)[0].tensor, wanted[0].tensor, tolerance, "convolution");
    return (cuda::fake_dnn_counts().runs - before) / 3;
  }

  /// x and w as inputs, a bias as a constant, and what follows.
  static int check(const Conv& conv, const Shape& x, const Shape& w, bool relu,
                   MatmulPrecision precision = MatmulPrecision::highest) {
    Graph graph;
    Value* input = graph.add_input(Type::tensor(DType::f32, Dims(x.begin(), x.end())), "x");
    Value* weights = graph.add_constant(sample<float>(w, 1, 2));
    Value* bias = graph.add_constant(sample<float>({w[0]}, 1, 3));
    Value* y = graph.add(conv, {input, weights, bias});
    graph.outputs = {relu ? graph.add(Relu{}, {y}) : y};
    return expect_same(graph, {sample<float>(x, 1)}, {1e-5, 1e-4}, precision);
  }

  int live_ = 0;
};

TEST_F(LibraryConvolutions, WithBiasAndActivation) {
  EXPECT_EQ(check({.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}}, {2, 3, 8, 9}, {5, 3, 3, 3}, true),
            1);
  EXPECT_EQ(check({.dilations = {2, 1},
                   .kernel_shape = {3, 2},
                   .pads = {0, 1, 2, 0},
                   .strides = {2, 1},
                   .group = 2},
                  {1, 4, 9, 7}, {6, 2, 3, 2}, false),
            1);
}

TEST_F(LibraryConvolutions, OneAndThreeAxes) {
  EXPECT_EQ(
      check({.kernel_shape = {5}, .pads = {2, 1}, .strides = {2}}, {2, 3, 20}, {4, 3, 5}, true), 1);
  EXPECT_EQ(check({.kernel_shape = {2, 3, 2}}, {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, true), 1);
}

TEST_F(LibraryConvolutions, WithAResidual) {
  for (const bool biased : {false, true})
    for (const bool active : {false, true}) {
      Graph graph;
      Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2, 3, 6, 5}), "x");
      Value* r = graph.add_input(Type::tensor(DType::f32, Dims{2, 4, 6, 5}), "r");
      std::vector<Value*> in{x, graph.add_constant(sample<float>({4, 3, 3, 3}, 1, 2))};
      if (biased) in.push_back(graph.add_constant(sample<float>({4}, 1, 3)));
      Value* y = graph.add(Conv{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}}, in);
      y = graph.add(Add{}, {r, y});
      graph.outputs = {active ? graph.add(Relu{}, {y}) : y};
      EXPECT_EQ(
          expect_same(graph, {sample<float>({2, 3, 6, 5}, 1), sample<float>({2, 4, 6, 5}, 5)}), 1)
          << biased << active;
    }
}

/// What is added twice, or expanded on the way, is not one graph of the library's.
TEST_F(LibraryConvolutions, OtherSumsRunOnTheOwnKernel) {
  const auto sum = [](const Shape& added, bool twice) {
    Graph graph;
    Value* x = graph.add_input(Type::tensor(DType::f32, Dims{1, 3, 6, 5}), "x");
    Value* r = graph.add_input(Type::tensor(DType::f32, Dims(added.begin(), added.end())), "r");
    Value* y = graph.add(Conv{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}},
                         {x, graph.add_constant(sample<float>({4, 3, 3, 3}, 1, 2))});
    Value* z = graph.add(Add{}, {y, r});
    if (twice) z = graph.add(Add{}, {z, r});
    graph.outputs = {graph.add(Relu{}, {z})};
    return expect_same(graph, {sample<float>({1, 3, 6, 5}, 1), sample<float>(added, 5)});
  };
  EXPECT_EQ(sum({1, 4, 6, 5}, false), 1);
  EXPECT_EQ(sum({1, 4, 6, 5}, true), 0);
  EXPECT_EQ(sum({1, 1, 6, 5}, false), 0);
  for (unsigned kept = 0; kept < 8; ++kept)
    sum({1, kept & 1 ? 4 : 1, kept & 2 ? 6 : 1, kept & 4 ? 5 : 1}, false);
}

/// Where it has no engine, or none that keeps f32, the own kernel runs; the results are the same.
TEST_F(LibraryConvolutions, OwnKernelStandsIn) {
  const Conv conv{.kernel_shape = {3, 3}};
  cuda::set_fake_dnn_engines(cuda::FakeEngines::none);
  EXPECT_EQ(check(conv, {1, 2, 6, 6}, {3, 2, 3, 3}, true), 0);
  cuda::set_fake_dnn_engines(cuda::FakeEngines::rounding);
  EXPECT_EQ(check(conv, {1, 2, 6, 6}, {3, 2, 3, 3}, true), 0);
  EXPECT_EQ(check(conv, {1, 2, 6, 6}, {3, 2, 3, 3}, true, MatmulPrecision::high), 1);
}

TEST_F(LibraryConvolutions, SaysWhatItRounds) {
  for (const auto& [precision, text] : {std::pair{MatmulPrecision::highest, "no TF32"},
                                        {MatmulPrecision::high, "rounded to TF32"}}) {
    Graph graph;
    Value* x = graph.add_input(Type::tensor(DType::f32, Dims{1, 2, 6, 6}), "x");
    graph.outputs = {graph.add(Conv{.kernel_shape = {3, 3}},
                               {x, graph.add_constant(sample<float>({3, 2, 3, 3}, 1))})};
    CompileOptions options;
    options.backend = open(precision);
    const auto plan = compile(graph.clone(), options).plan;
    bool found = false;
    for (const Step& step : plan->steps())
      if (step.row && step.row->name == "conv/cudnn") {
        found = true;
        EXPECT_NE(step.kernel->detail().find(text), std::string::npos) << step.kernel->detail();
      }
    EXPECT_TRUE(found);
  }
}

/// What finalising refuses is seen by the builder: the stand-in for the library is one.
TEST_F(LibraryConvolutions, WrongDescriptorsAreRefused) {
  const cuda::CudnnApi& api = StandIn::instance().tables().cudnn.api;
  cuda::DnnObject missing(api, DnnKind::tensor);
  EXPECT_EQ(
      missing.set(DnnAttribute::tensor_type, DnnType::data_type, cuda::DnnData::f32).finalize(),
      DnnStatus::bad_param);
  cuda::DnnObject wrong(api, DnnKind::pointwise);
  wrong
      .set(DnnAttribute::pointwise_mode, DnnType::int64,
           static_cast<int64_t>(cuda::DnnPointwise::relu))
      .set(DnnAttribute::pointwise_precision, DnnType::data_type, cuda::DnnData::f32);
  EXPECT_EQ(wrong.finalize(), DnnStatus::bad_param_attribute_type);
}

/// The real library finalises tensors, convolutions and pointwise operations without a device.
TEST(CudnnLibrary, TakesTheDescriptors) {
  const auto library = cuda::load_cudnn(0);
  if (!library.report.usable()) GTEST_SKIP() << library.report.problem;
  const cuda::CudnnApi& api = library.api;
  const auto tensor = [&](int64_t id, std::vector<int64_t> sizes, bool hidden) {
    auto out = std::make_unique<cuda::DnnObject>(api, DnnKind::tensor);
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
    out->set(DnnAttribute::tensor_type, DnnType::data_type, cuda::DnnData::f32)
        .set(DnnAttribute::tensor_sizes, DnnType::int64, sizes)
        .set(DnnAttribute::tensor_strides, DnnType::int64, strides)
        .set(DnnAttribute::tensor_id, DnnType::int64, id)
        .set(DnnAttribute::tensor_alignment, DnnType::int64, int64_t{64});
    if (hidden) out->set(DnnAttribute::tensor_virtual, DnnType::boolean, true);
    EXPECT_EQ(out->finalize(), DnnStatus::success) << api.get_error_string(out->status());
    return out;
  };
  const auto x = tensor(0, {2, 3, 8, 9}, false), w = tensor(1, {5, 3, 3, 3}, false);
  const auto sum = tensor(100, {2, 5, 8, 9}, true), y = tensor(3, {2, 5, 8, 9}, false);
  cuda::DnnObject how(api, DnnKind::convolution);
  const std::vector<int64_t> ones{1, 1};
  how.set(DnnAttribute::convolution_precision, DnnType::data_type, cuda::DnnData::f32)
      .set(DnnAttribute::convolution_mode, DnnType::convolution_mode,
           cuda::DnnConvolution::correlation)
      .set(DnnAttribute::convolution_spatial_axes, DnnType::int64, int64_t{2})
      .set(DnnAttribute::convolution_dilations, DnnType::int64, ones)
      .set(DnnAttribute::convolution_strides, DnnType::int64, ones)
      .set(DnnAttribute::convolution_pre_paddings, DnnType::int64, ones)
      .set(DnnAttribute::convolution_post_paddings, DnnType::int64, ones);
  EXPECT_EQ(how.finalize(), DnnStatus::success) << api.get_error_string(how.status());
  cuda::DnnObject forward(api, DnnKind::convolution_forward);
  forward.set(DnnAttribute::forward_convolution, DnnType::descriptor, how.get())
      .set(DnnAttribute::forward_x, DnnType::descriptor, x->get())
      .set(DnnAttribute::forward_w, DnnType::descriptor, w->get())
      .set(DnnAttribute::forward_y, DnnType::descriptor, sum->get())
      .set(DnnAttribute::forward_alpha, DnnType::f32, 1.0f)
      .set(DnnAttribute::forward_beta, DnnType::f32, 0.0f);
  EXPECT_EQ(forward.finalize(), DnnStatus::success) << api.get_error_string(forward.status());
  cuda::DnnObject mode(api, DnnKind::pointwise);
  mode.set(DnnAttribute::pointwise_mode, DnnType::pointwise_mode, cuda::DnnPointwise::relu)
      .set(DnnAttribute::pointwise_precision, DnnType::data_type, cuda::DnnData::f32);
  EXPECT_EQ(mode.finalize(), DnnStatus::success) << api.get_error_string(mode.status());
  cuda::DnnObject relu(api, DnnKind::operation_pointwise);
  relu.set(DnnAttribute::operation_pointwise, DnnType::descriptor, mode.get())
      .set(DnnAttribute::operation_pointwise_x, DnnType::descriptor, sum->get())
      .set(DnnAttribute::operation_pointwise_y, DnnType::descriptor, y->get());
  EXPECT_EQ(relu.finalize(), DnnStatus::success) << api.get_error_string(relu.status());
}

}  // namespace
}  // namespace dais
