#include "ops/sequence/sequence.h"

#include <gtest/gtest.h>

#include "ir/call.h"

namespace dais {
namespace {

Value* position(Graph& graph, int64_t at) { return graph.add_constant(Tensor::scalar(at)); }

TEST(Sequence, ElementsOfDifferentSizesGetSizesOfTheirOwn) {
  Graph graph;
  Value* a = graph.add_input(Type::tensor(DType::f32, Dims{Dim::symbol("n"), 3}), "a");
  Value* b = graph.add_input(Type::tensor(DType::f32, Dims{Dim::symbol("m"), 3}), "b");
  Value* both = graph.add(SequenceConstruct{}, {a, b});
  Value* first = graph.add(SequenceAt{}, {both, position(graph, 0)});
  Value* second = graph.add(SequenceAt{}, {both, position(graph, 1)});
  ASSERT_EQ(first->type.shape->size(), 2u);
  EXPECT_FALSE((*first->type.shape)[0] == (*second->type.shape)[0]);
  EXPECT_TRUE((*first->type.shape)[1].is(3));
  EXPECT_THROW(graph.add(SequenceAt{}, {a, position(graph, 0)}), Error);
}

TEST(Sequence, InsertEraseAndJoin) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::i64, Dims{2}), "x");
  Value* list = graph.add(SequenceEmpty{DType::i64}, {});
  for (int64_t at : {0, 0, -1})
    list = graph.add(SequenceInsert{}, {list, graph.add_constant(Tensor::of<int64_t>({1}, {at})),
                                        position(graph, at)});
  list = graph.add(SequenceInsert{}, {list, x});
  list = graph.add(SequenceErase{}, {list, position(graph, -4)});
  graph.outputs = {graph.add(ConcatFromSequence{}, {list}), graph.add(SequenceLength{}, {list})};
  const Datum fed(Tensor::of<int64_t>({2}, {7, 8}));
  const auto results = evaluate(graph, std::span(&fed, 1));
  EXPECT_EQ(results[0].tensor.to_ints(), (std::vector<int64_t>{-1, 0, 7, 8}));
  EXPECT_EQ(results[1].tensor.to_ints(), std::vector<int64_t>{3});
}

TEST(Sequence, PositionsOutsideAreNamed) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{}), "x");
  Value* one = graph.add(SequenceConstruct{}, {x});
  graph.outputs = {graph.add(SequenceAt{}, {one, position(graph, 1)})};
  const Datum fed(Tensor::scalar<float>(1));
  EXPECT_THROW(evaluate(graph, std::span(&fed, 1)), Error);
}

}  // namespace
}  // namespace dais
