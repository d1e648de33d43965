#include "onnx/exporter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "ir/call.h"
#include "onnx/testing/test_model.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"

namespace dais::onnx::testing {
namespace {

Model model_of(std::unique_ptr<Graph> graph, std::vector<std::string> outputs) {
  Model out;
  out.graph = std::move(graph);
  out.outputs = std::move(outputs);
  return out;
}

std::vector<Datum> run(const Model& model, const std::vector<Datum>& inputs) {
  return evaluate(*model.graph, inputs);
}

TEST(Exporter, OutputsKeepTheirNamesWhateverTheyAre) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim::symbol("N")}), "x");
  Value* one = graph->add_constant(Tensor::of<float>(Shape{1}, {1}), "one");
  Value* sum = graph->add(Add{}, {x, one}, "sum");
  graph->outputs = {x, one, sum, sum};
  const Model model = model_of(std::move(graph), {"a", "b", "c", "d"});
  const Model back = import_text(export_model(model));
  EXPECT_EQ(back.outputs, model.outputs);
  EXPECT_EQ(back.graph->inputs[0]->name, "x");
  EXPECT_EQ(back.graph->inputs[0]->type.text(), "f32[N]");
  const std::vector<Datum> in = {Tensor::of<float>(Shape{2}, {3, 4})};
  const auto first = run(model, in), second = run(back, in);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(first[i].tensor.identical(second[i].tensor)) << i;
}

TEST(Exporter, RequiredAttributesAreStatedAtTheirDefaults) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{2}), "x");
  graph->outputs = {graph->add(Concat{}, {x, x})};
  const std::string bytes = export_model(model_of(std::move(graph), {"y"}));
  EXPECT_NE(bytes.find("axis"), std::string::npos);
}

TEST(Exporter, ExternalDataLiesBesideTheModel) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("dais_export_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{1}), "x");
  Tensor weights(DType::f32, Shape{4096});
  std::fill_n(weights.data<float>().data(), 4096, 0.5f);
  graph->outputs = {graph->add(Add{}, {x, graph->add_constant(weights, "w")})};
  const Model model = model_of(std::move(graph), {"y"});
  save_model(model, folder / "m.onnx", {.external_file = "m.onnx.data"});
  EXPECT_LT(std::filesystem::file_size(folder / "m.onnx"), 1000u);
  EXPECT_EQ(std::filesystem::file_size(folder / "m.onnx.data"), 4096u * 4);
  const Model back = import_model(folder / "m.onnx");
  const std::vector<Datum> in = {Tensor::of<float>(Shape{1}, {1})};
  EXPECT_EQ(run(back, in)[0].tensor.to_double(4095), 1.5);
  std::filesystem::remove_all(folder);
}

TEST(Exporter, SubgraphsNameWhatTheyTakeFromOutside) {
  const std::string body =
      graph_proto({{{"Identity", {"c"}, {"more"}}, {"Add", {"s", "x"}, {"next"}}},
                   {value_info("i", DType::i64, {}), value_info("c", DType::boolean, {}),
                    value_info("s", DType::f32, {"2"})},
                   {"more", "next"}});
  TestNode loop{"Loop", {"trips", "", "x"}, {"y"}};
  loop.graph_name = "body";
  loop.graph = body;
  const std::string x = value_info("x", DType::f32, {"2"});
  const Model model =
      import_text(model_proto({{loop}, {value_info("trips", DType::i64, {}), x}, {"y"}}));
  const Model back = import_text(export_model(model));
  const std::vector<Datum> in = {Tensor::scalar<int64_t>(3), Tensor::of<float>(Shape{2}, {1, 2})};
  const auto out = run(back, in);
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<float>(Shape{2}, {4, 8})));
}

/// Every op can be written: by its own rule or by what it stands for, at the newest opset.
TEST(Exporter, EveryOpHasAFormOrParts) {
  for (const Op* op : op_registry().ops())
    EXPECT_TRUE(export_rule(*op, kNewestOpset) || op->decompose)
        << op->name << " has no ONNX form: give its rule an export_as, or the op a decompose";
}

std::set<std::string_view> without_form(int64_t opset) {
  std::set<std::string_view> out;
  for (const Op* op : op_registry().ops())
    if (!export_rule(*op, opset) && !op->decompose) out.insert(op->name);
  return out;
}

/// Ops that came later and that nothing older adds up to; all others can be written.
TEST(Exporter, OnlyTheseHaveNoFormInOldOpsets) {
  std::set<std::string_view> expected = {
      "bit_cast",         "bitwise_and",   "bitwise_not",  "bitwise_or",    "bitwise_xor",
      "center_crop_pad",  "col2im",        "cum_prod",     "deform_conv",   "image_decoder",
      "regex_full_match", "string_concat", "string_split", "tensor_scatter"};
  EXPECT_EQ(without_form(17), expected);
  expected.insert({"bernoulli", "blackman_window", "dft", "grid_sample", "hamming_window",
                   "hann_window", "mel_weight_matrix", "optional", "optional_get_element",
                   "optional_has_element", "sequence_map", "stft"});
  EXPECT_EQ(without_form(13), expected);
}

}  // namespace
}  // namespace dais::onnx::testing
