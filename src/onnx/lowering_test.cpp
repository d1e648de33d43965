#include <gtest/gtest.h>

#include <algorithm>

#include "ir/call.h"
#include "onnx/exporter.h"
#include "onnx/testing/test_model.h"
#include "ops/affine_grid/affine_grid.h"
#include "ops/attention/attention.h"
#include "ops/run_op.h"

namespace dais::onnx::testing {
namespace {

Tensor ints(const Shape& shape, std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(shape, values);
}

/// Writes one node at an early opset; what is read back consists of other ops and gives the same.
/// Inputs listed in `constants` are constants of the graph.
template <typename Struct>
void expect_parts(Struct attrs, const std::vector<Tensor>& inputs, size_t outputs = 1,
                  const std::vector<size_t>& constants = {}, int64_t opset = 17) {
  Model model;
  model.graph = std::make_unique<Graph>();
  Values values;
  std::vector<Datum> data;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool constant = std::find(constants.begin(), constants.end(), i) != constants.end();
    const std::string name = "x" + std::to_string(i);
    values.push_back(!inputs[i] ? nullptr
                     : constant ? model.graph->add_constant(inputs[i], name)
                                : model.graph->add_input(Type::of(inputs[i]), name));
    if (inputs[i] && !constant) data.emplace_back(inputs[i]);
  }
  model.graph->outputs = model.graph->add_node(std::move(attrs), values, outputs).outs;
  for (size_t i = 0; i < outputs; ++i) model.outputs.push_back("y" + std::to_string(i));
  ExportOptions options;
  options.opset = opset;
  const Model back = import_text(export_model(model, options));
  for (const auto& node : back.graph->nodes()) EXPECT_FALSE(node->template as<Struct>());
  const auto wanted = evaluate(*model.graph, data), got = evaluate(*back.graph, data);
  for (size_t i = 0; i < outputs; ++i)
    EXPECT_LE(test_distance(got[i].tensor, wanted[i].tensor), 1e-5) << i;
}

TEST(Lowering, RotaryEmbeddingInParts) {
  const Tensor cos = test_tensor({10, 4}, 2), sin = test_tensor({10, 4}, 3);
  const Tensor places = ints({2, 3}, {0, 1, 2, 7, 8, 9});
  for (const bool interleaved : {false, true}) {
    const RotaryEmbedding whole{.interleaved = interleaved};
    const RotaryEmbedding partial{
        .interleaved = interleaved, .num_heads = 5, .rotary_embedding_dim = 8};
    expect_parts(whole, {test_tensor({2, 5, 3, 8}), cos, sin, places});
    expect_parts(whole, {test_tensor({2, 3, 40}), cos, sin, places});
    expect_parts(partial, {test_tensor({2, 3, 60}), cos, sin, places});
    expect_parts(whole,
                 {test_tensor({2, 5, 3, 8}), test_tensor({2, 3, 4}, 2), test_tensor({2, 3, 4}, 3)});
  }
}

TEST(Lowering, AffineGridInParts) {
  for (const bool align : {false, true}) {
    const AffineGrid attrs{.align_corners = align};
    expect_parts(attrs, {test_tensor({2, 2, 3}), ints({4}, {2, 3, 5, 4})}, 1, {1});
    expect_parts(attrs, {test_tensor({2, 3, 4}), ints({5}, {2, 3, 2, 5, 4})}, 1, {1});
  }
}

TEST(Lowering, AttentionOfValidLengthsInParts) {
  const Tensor q = test_tensor({2, 4, 3, 8}, 1), lengths = ints({2}, {4, 6});
  Tensor k = test_tensor({2, 2, 6, 8}, 2), v = test_tensor({2, 2, 6, 8}, 3);
  // Behind the valid entries lies what nobody may read.
  for (size_t head = 0; head < 2; ++head)
    for (size_t i = 0; i < 16; ++i)
      k.data<float>()[head * 48 + 32 + i] = v.data<float>()[head * 48 + 32 + i] = NAN;
  for (const bool causal : {false, true})
    expect_parts(Attention{.is_causal = causal}, {q, k, v, {}, {}, {}, lengths});
}

}  // namespace
}  // namespace dais::onnx::testing
