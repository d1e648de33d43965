#include <gtest/gtest.h>

#include "api/compile.h"
#include "ir/text.h"
#include "ops/conv/conv.h"
#include "ops/softmax/softmax.h"
#include "passes/passes.h"
#include "runtime/row_test.h"
#include "runtime/session.h"

namespace dais {
namespace {

/// Has kernels for convolutions of f32 and for softmax of anything.
class FloatConvolutions : public Target {
 public:
  bool has_kernel(const Node& node) const override {
    return (node.as<Conv>() && node.in[0]->type.dtype == DType::f32) || node.as<Softmax>();
  }
  Isa isa() const override { return Isa::plain; }
  int threads() const override { return 1; }
};

std::string ops_after(const std::string& text) {
  const auto graph = parse_graph(text);
  widen_half(*graph, FloatConvolutions());
  graph->verify();
  std::string out;
  for (const auto& node : graph->nodes())
    out += (out.empty() ? "" : " ") + std::string(node->op->name);
  return out + " -> " + graph->outputs[0]->type.text();
}

TEST(WidenHalf, OnlyWhereThatGivesAKernel) {
  EXPECT_EQ(ops_after("input %x: f16[N,3,8,8]\ninput %w: f16[4,3,3,3]\n"
                      "%t = conv(%x, %w)\n%y = softmax(%t)\noutput %y\n"),
            "cast cast conv cast softmax -> f16[N,4,6,6]");
  EXPECT_EQ(ops_after("input %x: f32[1,3,8,8]\ninput %w: f32[4,3,3,3]\n"
                      "%y = conv(%x, %w)\noutput %y\n"),
            "conv -> f32[1,4,6,6]");
  // No kernel either way.
  EXPECT_EQ(ops_after("input %x: bf16[2,3]\n%y = relu(%x)\noutput %y\n"), "relu -> bf16[2,3]");
}

template <typename T>
void check_model(const char* type) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(dtype_of<T>, Dims{2, 8, 12, 12}), "x");
  Value* w = graph->add_constant(sample<T>({16, 8, 3, 3}, 0.3));
  graph->outputs = {graph->add(Conv{.pads = {1, 1, 1, 1}}, {x, w}, "y")};
  const std::vector<Datum> inputs{sample<T>({2, 8, 12, 12}, 1, 2)};
  const Tensor wanted = evaluate(*graph, inputs)[0].tensor;
  CompileOptions options;
  options.threads = 1;
  const auto plan = compile(std::move(graph), options).plan;
  for (const Step& step : plan->steps())
    EXPECT_TRUE(step.row || plan->options().isa < Isa::avx2) << type << " " << step.node->where();
  Session session(plan);
  // One rounding of the result, which may fall to the other side.
  const double step = dtype_of<T> == DType::f16 ? 1e-3 : 8e-3;
  expect_close(session.run(inputs)[0].tensor, wanted, {step, step}, type);
}

TEST(WidenHalf, ConvolutionsRunOnKernels) {
  check_model<Float16>("f16");
  check_model<BFloat16>("bf16");
}

}  // namespace
}  // namespace dais
