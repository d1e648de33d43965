#include "ops/norm/norm.h"
#include "ops/run_op.h"
#include "ops/softmax/softmax.h"
#include "runtime/plan_agreement_test.h"

namespace dais {
namespace {

TEST(NormRows, Agree) {
  for (const int64_t size : {1, 7, 64, 131}) {
    const Tensor x = test_tensor({3, 5, size});
    Graph graph;
    Value* in = graph.add_input(Type::of(x), "x");
    Value* scale = graph.add_constant(test_tensor({size}, 2));
    Value* bias = graph.add_constant(test_tensor({size}, 3));
    graph.outputs = graph.add_node(LayerNormalization{}, {in, scale, bias}, 3).outs;
    graph.outputs.push_back(graph.add(LayerNormalization{.epsilon = 0.5f}, {in, scale}));
    graph.outputs.push_back(graph.add(RMSNormalization{}, {in, scale}));
    expect_rows_agree(graph, {x}, 1e-5);
  }
}

TEST(NormRows, GradientsOfLayersAgree) {
  for (const int64_t size : {1, 7, 64, 131})
    for (const int64_t rows : {3, 300}) {
      const Tensor x = test_tensor({rows, size}), dy = test_tensor({rows, size}, 2);
      Graph graph;
      Values in{graph.add_input(Type::of(dy), "dy"), graph.add_input(Type::of(x), "x")};
      for (const int64_t seed : {3, 4, 5})
        in.push_back(graph.add_constant(
            test_tensor(seed == 3 ? Shape{size} : Shape{rows, 1}, static_cast<int>(seed))));
      graph.outputs = graph.add_node(LayerNormalizationBackward{}, in, 3).outs;
      expect_rows_agree(graph, {dy, x}, 1e-5);
    }
}

TEST(SoftmaxRows, AgreeOnEveryAxis) {
  const Tensor x = test_tensor({4, 19, 21});
  for (const int64_t axis : {0, 1, 2}) {
    Graph graph;
    Value* in = graph.add_input(Type::of(x), "x");
    graph.outputs = {graph.add(Softmax{.axis = axis}, {in}),
                     graph.add(LogSoftmax{.axis = axis}, {in})};
    expect_rows_agree(graph, {x}, 2e-6);
  }
}

}  // namespace
}  // namespace dais
