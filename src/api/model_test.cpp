#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "dais/c.h"
#include "dais/dais.h"
#include "onnx/testing/test_model.h"

namespace dais {
namespace {

using onnx::testing::model_proto;
using onnx::testing::TestGraph;
using onnx::testing::value_info;

const char* const kFashion = "examples/fashion/fashion.onnx";

/// y = x * w + b over f32[N,2], where b is an input with a default value.
Model line_model() {
  TestGraph graph;
  graph.nodes = {{"Mul", {"x", "w"}, {"scaled"}}, {"Add", {"scaled", "b"}, {"y"}}};
  graph.inputs = {value_info("x", DType::f32, {"N", "2"}), value_info("b", DType::f32, {"2"})};
  graph.outputs = {"y"};
  graph.initializers = {{"w", Tensor::of<float>({2}, {2, 3})},
                        {"b", Tensor::of<float>({2}, {10, 20})}};
  const std::string bytes = model_proto(graph);
  return Model::parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::vector<float> floats(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

template <typename Body>
void expect_error(Code code, const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(ApiModel, SaysWhatItTakesAndGives) {
  const Model model = Model::load(kFashion);
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "image");
  EXPECT_EQ(model.inputs()[0].type, "f32[N,1,28,28]");
  EXPECT_EQ(model.inputs()[0].dtype, DType::f32);
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{-1, 1, 28, 28}));
  EXPECT_EQ(model.outputs()[0].name, "probability");
}

TEST(ApiModel, DevicesAreChosenByName) {
  const Model model = line_model();
  EXPECT_EQ(model.compile().device(), "CPU");
  EXPECT_TRUE(model.compile({.device = "cpu"}).warnings().empty());
  expect_error(Code::invalid_argument, "did you mean gpu",
               [&] { model.compile({.device = "gpo"}); });
  expect_error(Code::invalid_argument, "names no GPU", [&] { model.compile({.device = "gpu:x"}); });
  expect_error(Code::unsupported, "in f32",
               [&] { model.compile({.matmul_precision = MatmulPrecision::high}); });
  // Whatever there is: it runs, and says where.
  EXPECT_FALSE(model.compile({.device = "auto"}).device().empty());
  dais_options options{};
  options.device = "tpu";
  EXPECT_EQ(dais_session_open(kFashion, &options), nullptr);
  EXPECT_NE(std::string(dais_last_error()).find("'tpu' is no device"), std::string::npos);
  options = {};
  options.matmul_precision = "hi";
  EXPECT_EQ(dais_session_open(kFashion, &options), nullptr);
}

TEST(ApiModel, FilesThatCannotBeReadAreNamed) {
  expect_error(Code::not_found, "absent.onnx", [] { Model::load("absent.onnx"); });
  expect_error(Code::invalid_model, "README.md", [] { Model::load("README.md"); });
  const std::vector<uint8_t> noise{0x3a, 0xff, 0xff, 0xff};
  EXPECT_THROW(Model::parse(noise), Error);
}

TEST(ApiModel, AModelThatIsUsedUpLeavesItsCopiesAlone) {
  Model model = Model::load(kFashion);
  const Model copy = model;
  InferenceSession sessions[] = {std::move(model).compile().session(), copy.compile().session(),
                                 Model::load(kFashion).compile().session()};
  std::vector<Tensor> results;
  for (InferenceSession& session : sessions) {
    Tensor image(DType::f32, {1, 1, 28, 28});
    std::fill_n(image.storage<float>(), image.elements(), 0.5F);
    session.set("image", image);
    session.run();
    results.push_back(session.get("probability").clone());
  }
  EXPECT_TRUE(results[0].identical(results[1]));
  EXPECT_TRUE(results[0].identical(results[2]));
}

TEST(ApiModel, EveryLevelGivesTheSameAnswer) {
  for (const Optimize level : {Optimize::off, Optimize::portable, Optimize::full}) {
    InferenceSession session = line_model().compile({.optimize = level}).session();
    session.set("x", Tensor::of<float>({1, 2}, {1, 2}));
    session.run();
    EXPECT_EQ(floats(session.get("y")), (std::vector<float>{12, 26}));
  }
}

TEST(ApiModel, DefaultInputsAreConstantsUnlessNamed) {
  const Model model = line_model();
  EXPECT_EQ(model.inputs().size(), 1u);
  const Executable executable = model.compile({.overrides = {"b"}});
  ASSERT_EQ(executable.inputs().size(), 2u);
  InferenceSession session = executable.session();
  session.set("x", Tensor::of<float>({1, 2}, {1, 2}));
  session.set("b", Tensor::of<float>({2}, {0, 1}));
  session.run();
  EXPECT_EQ(floats(session.get("y")), (std::vector<float>{2, 7}));
}

TEST(ApiModel, OpenDimensionsTakeAnySize) {
  InferenceSession session = line_model().compile().session();
  for (const int64_t rows : {1, 7, 0, 300, 7}) {
    Tensor x(DType::f32, {rows, 2});
    std::fill_n(x.storage<float>(), x.elements(), 1.0f);
    session.set("x", x);
    session.run();
    const Tensor& y = session.get("y");
    ASSERT_EQ(y.shape(), (Shape{rows, 2}));
    for (int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(y.data<float>()[static_cast<size_t>(2 * row)], 12);
      EXPECT_EQ(y.data<float>()[static_cast<size_t>(2 * row + 1)], 23);
    }
  }
}

TEST(ApiModel, SizesThatFollowFromOtherInputsAreChecked) {
  TestGraph graph;
  graph.nodes = {{"Relu", {"mask"}, {"y"}}, {"Relu", {"x"}, {"z"}}};
  graph.inputs = {value_info("x", DType::f32, {"past"}),
                  value_info("mask", DType::f32, {"past + 1"})};
  graph.outputs = {"y", "z"};
  const std::string bytes = model_proto(graph);
  auto session = Model::parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()})
                     .compile()
                     .session();
  session.set("x", Tensor::of<float>({2}, {1, 2}));
  session.set("mask", Tensor::of<float>({2}, {1, 2}));
  expect_error(Code::invalid_argument, "'mask'", [&] { session.run(); });
  session.set("mask", Tensor::of<float>({3}, {1, -2, 3}));
  session.run();
  EXPECT_EQ(floats(session.get("y")), (std::vector<float>{1, 0, 3}));
}

TEST(ApiModel, StatesGoOnFromRunToRun) {
  TestGraph graph;
  graph.nodes = {{"Add", {"count", "step"}, {"next"}}};
  graph.inputs = {value_info("count", DType::f32, {"2"}), value_info("step", DType::f32, {"2"})};
  graph.outputs = {"next"};
  const std::string bytes = model_proto(graph);
  const Model model = Model::parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  expect_error(Code::invalid_argument, "Did you mean 'next'", [&] {
    model.compile({.states = {{"count", "nxt"}}});
  });
  InferenceSession session = model.compile({.states = {{"count", "next"}}}).session();
  expect_error(Code::invalid_argument, "no value", [&] { session.state("count"); });
  session.set("count", Tensor::of<float>({2}, {1, 2}));
  session.set("step", Tensor::of<float>({2}, {1, 1}));
  for (int run = 0; run < 3; ++run) session.run();
  EXPECT_EQ(floats(session.get("next")), (std::vector<float>{4, 5}));
  EXPECT_EQ(session.get("next").raw(), session.state("count").raw());
  const Tensor memory = Tensor::of<float>({2}, {7, 8});
  session.bind_state("count", memory);
  session.run();
  EXPECT_EQ(floats(memory), (std::vector<float>{8, 9}));
  expect_error(Code::invalid_argument, "no state", [&] { session.state("step"); });
}

TEST(ApiModel, InputsAreViewsThatMayBeRewritten) {
  InferenceSession session = line_model().compile().session();
  std::vector<float> x{1, 1};
  session.set("x", Tensor::view(DType::f32, {1, 2}, x.data()));
  session.run();
  const Tensor kept = session.get("y").clone();
  x = {2, 2};
  session.run();
  EXPECT_EQ(floats(session.get("y")), (std::vector<float>{14, 26}));
  EXPECT_EQ(floats(kept), (std::vector<float>{12, 23}));
}

TEST(ApiModel, WrongNamesAndInputsAreNamedAndTheSessionLivesOn) {
  InferenceSession session = line_model().compile().session();
  const Tensor good = Tensor::of<float>({1, 2}, {1, 2});
  expect_error(Code::invalid_argument, "no input 'xx'", [&] { session.set("xx", good); });
  expect_error(Code::invalid_argument, "Call run()", [&] { session.get("y"); });
  expect_error(Code::invalid_argument, "x", [&] { session.run(); });
  session.set("x", Tensor::of<double>({1, 2}, {1, 2}));
  expect_error(Code::invalid_argument, "x", [&] { session.run(); });
  session.set("x", Tensor::of<float>({1, 3}, {1, 2, 3}));
  expect_error(Code::invalid_argument, "x", [&] { session.run(); });
  session.set("x", Tensor::of<float>({2}, {1, 2}));
  expect_error(Code::invalid_argument, "x", [&] { session.run(); });
  session.set("x", good);
  session.run();
  EXPECT_EQ(floats(session.get("y")), (std::vector<float>{12, 26}));
  expect_error(Code::invalid_argument, "no output 'z'", [&] { session.get("z"); });
  InferenceSession named = Model::load(kFashion).compile().session();
  expect_error(Code::invalid_argument, "Did you mean 'image'?", [&] { named.set("imge", good); });
}

TEST(ApiThreads, SessionsOfOneExecutableRunAtTheSameTime) {
  const Executable executable = line_model().compile({.threads = 1});
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wrong.size(); ++i)
    threads.emplace_back([&, i] {
      InferenceSession session = executable.session();
      for (int run = 0; run < 100; ++run) {
        const auto value = static_cast<float>(run + static_cast<int>(i));
        Tensor x(DType::f32, {1 + run % 5, 2});
        std::fill_n(x.storage<float>(), x.elements(), value);
        session.set("x", x);
        session.run();
        wrong[i] += floats(session.get("y")).back() != 3 * value + 20;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(ApiC, RunsAndReportsErrors) {
  EXPECT_EQ(dais_session_load("absent.onnx", nullptr, 0), nullptr);
  EXPECT_NE(std::string(dais_last_error()).find("absent.onnx"), std::string::npos);
  EXPECT_EQ(dais_session_load(kFashion, "fast", 0), nullptr);
  dais_session* session = dais_session_load(kFashion, "full", 1);
  ASSERT_NE(session, nullptr) << dais_last_error();
  EXPECT_EQ(dais_input_count(session), 1u);
  EXPECT_STREQ(dais_input_name(session, 0), "image");
  EXPECT_EQ(dais_input_name(session, 1), nullptr);
  const std::vector<float> pixels(28 * 28);
  const int64_t dims[] = {1, 1, 28, 28};
  dais_tensor image{1, 4, dims, pixels.data(), sizeof(float) * pixels.size()};
  EXPECT_NE(dais_run(session), 0);
  EXPECT_NE(dais_set_input(session, "imge", &image), 0);
  EXPECT_NE(std::string(dais_last_error()).find("'image'"), std::string::npos);
  for (const dais_tensor& bad : {dais_tensor{8, 4, dims, pixels.data(), image.size_bytes},
                                 dais_tensor{99, 4, dims, pixels.data(), image.size_bytes},
                                 dais_tensor{1, 4, dims, pixels.data(), image.size_bytes - 4},
                                 dais_tensor{1, -1, dims, pixels.data(), image.size_bytes}})
    EXPECT_NE(dais_set_input(session, "image", &bad), 0);
  ASSERT_EQ(dais_set_input(session, "image", &image), 0) << dais_last_error();
  ASSERT_EQ(dais_run(session), 0) << dais_last_error();
  dais_tensor output;
  EXPECT_NE(dais_get_output(session, "absent", &output), 0);
  ASSERT_EQ(dais_get_output(session, "probability", &output), 0);
  EXPECT_EQ(output.dtype, 1);
  EXPECT_EQ(output.size_bytes, 10 * sizeof(float));
  dais_session* twin = dais_session_clone(session);
  dais_session_free(session);
  ASSERT_EQ(dais_set_input(twin, "image", &image), 0);
  EXPECT_EQ(dais_run(twin), 0);
  dais_session_free(twin);
}

}  // namespace
}  // namespace dais
