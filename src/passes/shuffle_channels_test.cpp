#include "ir/call.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"
#include "passes/passes.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

class NoTarget : public Target {
 public:
  bool has_kernel(const Node&) const override { return false; }
  Isa isa() const override { return Isa::plain; }
  int threads() const override { return 1; }
};

TEST(ShuffleChannels, StaysChannelsLast) {
  Graph graph;
  const auto sizes = [&](std::vector<int64_t> list) {
    return graph.add_constant(Tensor::ints(list));
  };
  const Tensor x = sample<float>({2, 4, 5, 12});
  Value* first = graph.add(Transpose{{0, 3, 1, 2}}, {graph.add_input(Type::of(x), "x")});
  Value* split = graph.add(Reshape{}, {first, sizes({2, 3, 4, 4, 5})});
  Value* turned = graph.add(Transpose{{0, 2, 1, 3, 4}}, {split});
  Value* merged = graph.add(Reshape{}, {turned, sizes({2, 12, 4, 5})});
  graph.outputs = {graph.add(Transpose{{0, 2, 3, 1}}, {merged})};
  const Datum data[] = {x};
  const Tensor wanted = evaluate(graph, data)[0].tensor;
  EXPECT_TRUE(shuffle_channels(graph, NoTarget()));
  graph.verify();
  EXPECT_EQ(graph.size(), 3U);
  EXPECT_TRUE(evaluate(graph, data)[0].tensor.identical(wanted));
}

}  // namespace
}  // namespace dais
