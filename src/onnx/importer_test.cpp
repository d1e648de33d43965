#include <gtest/gtest.h>

#include "ir/call.h"
#include "onnx/testing/test_model.h"

namespace dais::onnx::testing {
namespace {

const std::string x = value_info("x", DType::f32, {"N", "2"});

std::string message_of(const std::string& bytes) {
  try {
    import_text(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& bytes, const std::string& part) {
  const std::string message = message_of(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TestFunction relu_function(const std::string& name, const std::string& inner,
                           const std::string& domain = {}) {
  return {name, {"a"}, {"b"}, {}, {{inner, {"a"}, {"b"}, {}, domain}}};
}

TEST(Importer, ReadsNodesInAnyOrder) {
  const Model model =
      import_text(model_proto({{{"Neg", {"y"}, {"z"}}, {"Relu", {"x"}, {"y"}}}, {x}, {"z"}}));
  ASSERT_EQ(model.graph->size(), 2u);
  EXPECT_EQ(model.graph->nodes().front()->outs[0]->name, "y");
  EXPECT_EQ(model.graph->outputs[0]->type.text(), "f32[N,2]");
  const std::vector<Datum> in = {Tensor::of<float>(Shape{1, 2}, {-1, 2})};
  const auto out = evaluate(*model.graph, in);
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<float>(Shape{1, 2}, {-0.f, -2})));
}

TEST(Importer, ListsEveryUnknownOperatorAtOnce) {
  const std::string bytes = model_proto({{{"Rellu", {"x"}, {"y"}},
                                          {"Magic", {"y"}, {"z"}, {}, "my.domain"},
                                          {"Magic", {"z"}, {"w"}, {}, "my.domain"}},
                                         {x},
                                         {"w"}});
  expect_error(bytes, "2 problems");
  expect_error(bytes, "Did you mean 'Relu'?");
  expect_error(bytes, "operator 'Magic' of domain 'my.domain'");
  expect_error(bytes, "2 nodes in all");
}

TEST(Importer, NamesTheNewestOpset) {
  expect_error(model_proto({{{"Relu", {"x"}, {"y"}}}, {x}, {"y"}}, 99), "opset 99");
}

TEST(Importer, RefusesCyclesAndDoubleNames) {
  expect_error(model_proto({{{"Relu", {"z"}, {"y"}}, {"Relu", {"y"}, {"z"}}}, {x}, {"y"}}),
               "form a cycle");
  expect_error(model_proto({{{"Relu", {"x"}, {"y"}}, {"Neg", {"x"}, {"y"}}}, {x}, {"y"}}),
               "defined twice");
  expect_error(model_proto({{{"Relu", {"nowhere"}, {"y"}}}, {x}, {"y"}}), "nothing defines");
  expect_error(model_proto({{}, {x}, {"y"}}), "no node makes the output 'y'");
}

TEST(Importer, FunctionsAreInlinedWithTheirNames) {
  const Model model =
      import_text(model_proto({{{"Outer", {"x"}, {"y"}, {}, "local"}}, {x}, {"y"}}, 21,
                              {function_proto(relu_function("Outer", "Inner", "local")),
                               function_proto(relu_function("Inner", "Relu"))}));
  ASSERT_EQ(model.graph->size(), 1u);
  EXPECT_EQ(model.graph->nodes().front()->name, "y/b/b");
  EXPECT_EQ(model.functions, 2u);
}

TEST(Importer, RecursiveFunctionsAreAnError) {
  expect_error(model_proto({{{"Again", {"x"}, {"y"}, {}, "local"}}, {x}, {"y"}}, 21,
                           {function_proto(relu_function("Again", "Again", "local"))}),
               "calls itself");
}

TEST(Importer, FunctionsThatMultiplyAreStopped) {
  std::vector<std::string> functions;
  for (int level = 0; level < 30; ++level) {
    const std::string inner = "F" + std::to_string(level + 1);
    TestFunction function{"F" + std::to_string(level), {"a"}, {"c"}, {}, {}};
    function.nodes = {{inner, {"a"}, {"b"}, {}, "local"}, {inner, {"b"}, {"c"}, {}, "local"}};
    functions.push_back(function_proto(function));
  }
  functions.push_back(function_proto(relu_function("F30", "Relu")));
  expect_error(model_proto({{{"F0", {"x"}, {"y"}, {}, "local"}}, {x}, {"y"}}, 21, functions),
               "expand to more than");
}

TEST(Importer, DefaultInputsMayBeOverridden) {
  const TestGraph graph{{{"Relu", {"b"}, {"y"}}},
                        {value_info("b", DType::f32, {"2"})},
                        {"y"},
                        {{"b", Tensor::of<float>(Shape{2}, {1, 2})}}};
  const std::string bytes = model_proto(graph);
  const Model model = import_text(bytes);
  EXPECT_TRUE(model.graph->inputs.empty());
  ASSERT_EQ(model.defaults.size(), 1u);
  EXPECT_EQ(model.defaults[0].first, "b");
  const Model open = import_model(
      Bytes{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, nullptr, {{"b"}});
  ASSERT_EQ(open.graph->inputs.size(), 1u);
  EXPECT_EQ(open.graph->inputs[0]->name, "b");
}

TEST(Importer, SubgraphsCaptureOuterValues) {
  const std::string branch = graph_proto({{{"Neg", {"r"}, {"v"}}}, {}, {"v"}});
  const std::string other = graph_proto({{{"Relu", {"x"}, {"v"}}}, {}, {"v"}});
  TestNode node{"If", {"c"}, {"y"}};
  node.graph_name = "then_branch";
  node.graph = branch;
  std::string text = node_proto(node);
  WireWriter more;
  WireWriter attribute;
  attribute.text(1, "else_branch");
  attribute.text(6, other);
  attribute.integer(20, 5);
  more.message(5, attribute);
  text += more.data();
  WireWriter graph, model, opset;
  graph.text(1, node_proto({"Relu", {"x"}, {"r"}}));
  graph.text(1, text);
  graph.text(11, value_info("c", DType::boolean, {}));
  graph.text(11, x);
  graph.text(12, value_info("y", DType::f32, {"N", "2"}));
  model.integer(1, 10);
  opset.integer(2, 21);
  model.message(8, opset);
  model.message(7, graph);
  const Model read = import_text(model.data());
  const Node& branch_node = *read.graph->nodes().back();
  ASSERT_EQ(branch_node.regions.size(), 2u);
  EXPECT_EQ(branch_node.in.size(), 3u);
  const std::vector<Datum> in = {Tensor::scalar(true), Tensor::of<float>(Shape{1, 2}, {-1, 2})};
  EXPECT_TRUE(
      evaluate(*read.graph, in)[0].tensor.identical(Tensor::of<float>(Shape{1, 2}, {-0.f, -2})));
}

TEST(Importer, TruncatedFilesAreErrors) {
  const std::string bytes = model_proto({{{"Relu", {"x"}, {"y"}}}, {x}, {"y"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      import_text(bytes.substr(0, size));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Code::internal) << error.what();
    }
  }
}

}  // namespace
}  // namespace dais::onnx::testing
