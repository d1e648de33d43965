#pragma once

#include <gtest/gtest.h>

#include "ir/call.h"
#include "ir/onnx_import.h"

namespace dais {

/// For tests: an ONNX node without a file.
class TestImport final : public OnnxImport {
 public:
  using Attributes = std::vector<std::pair<std::string, AttrValue>>;

  TestImport(Graph& target, std::string_view node_type, int64_t version, Values inputs,
             Attributes attrs, size_t output_count = 1)
      : OnnxImport(target) {
    type = node_type;
    opset = version;
    in = std::move(inputs);
    attributes = std::move(attrs);
    outputs = output_count;
  }

  Values run() {
    const auto match = op_registry().match(domain, type, opset);
    if (!match.rule) fail("there is no rule");
    if (match.rule->import) return match.rule->import(*this);
    const AttrsInfo* info = match.op->attrs;
    auto data = info->make();
    fill(*info, data.get(), false);
    return graph.add_node(*match.op, Attrs(info, std::move(data)), in, outputs).outs;
  }

  using OnnxImport::region;
  ImportedRegion region(std::string_view, std::vector<Type>) override {
    fail("there is no region");
  }
  std::optional<Type> type_attribute(std::string_view) override { return std::nullopt; }
  bool has_region(std::string_view) const override { return false; }
};

/// Imports one node whose first input is fed and whose others are constants (absent tensors are
/// left out), runs it, and checks the inferred type of each output.
inline std::vector<Tensor> run_onnx(std::string_view type, int64_t opset,
                                    const std::vector<Tensor>& inputs,
                                    TestImport::Attributes attributes = {}, size_t outputs = 1) {
  Graph graph;
  Values values{graph.add_input(Type::of(inputs.at(0)), "x")};
  for (size_t i = 1; i < inputs.size(); ++i)
    values.push_back(inputs[i] ? graph.add_constant(inputs[i]) : nullptr);
  graph.outputs = TestImport(graph, type, opset, values, std::move(attributes), outputs).run();
  graph.verify();
  const Datum fed(inputs[0]);
  std::vector<Tensor> results;
  for (const Datum& result : evaluate(graph, std::span(&fed, 1))) {
    const Type& promised = graph.outputs[results.size()]->type;
    EXPECT_TRUE(!promised.static_shape() || promised == Type::of(result.tensor))
        << promised.text() << " is not " << result.tensor.describe();
    results.push_back(result.tensor);
  }
  return results;
}

}  // namespace dais
