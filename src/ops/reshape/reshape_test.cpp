#include "ops/reshape/reshape.h"

#include "ops/concat/concat.h"
#include "ops/gather/gather.h"
#include "ops/op_testing.h"
#include "ops/shape/shape.h"
#include "ops/slice/slice.h"
#include "ops/split/split.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

Value* ints(Graph& graph, Ints values) { return graph.add_constant(Tensor::ints(values)); }

Value* symbolic(Graph& graph, const char* name, std::vector<const char*> dims,
                DType dtype = DType::f32) {
  Dims shape;
  for (const char* dim : dims) shape.push_back(Dim::parse(dim));
  return graph.add_input(Type::tensor(dtype, shape), name);
}

TEST(Reshape, HeadsOfAttentionStaySymbolic) {
  Graph graph;
  Value* x = symbolic(graph, "x", {"batch", "length", "768"});
  Value* shape = graph.add(ShapeOf{}, {x});
  Value* batch = graph.add(Gather{}, {shape, ints(graph, {0})});
  Value* length = graph.add(Gather{}, {shape, ints(graph, {1})});
  Value* target = graph.add(Concat{}, {batch, length, ints(graph, {12, -1})});
  Value* heads = graph.add(Reshape{}, {x, target});
  EXPECT_EQ(heads->type.text(), "f32[batch,length,12,64]");
  Value* moved = graph.add(Transpose{{0, 2, 1, 3}}, {heads});
  EXPECT_EQ(moved->type.text(), "f32[batch,12,length,64]");
  Value* back = graph.add(Reshape{}, {moved, ints(graph, {0, 0, -1})});
  EXPECT_EQ(back->type.text(), "f32[batch,12,64*length]");
}

TEST(Reshape, OpenSizeBesideSharedSymbols) {
  Graph graph;
  Value* x = symbolic(graph, "x", {"n", "past + 1", "6"});
  Value* target =
      graph.add(Concat{}, {graph.add(ShapeOf{.start = 1, .end = 2}, {x}), ints(graph, {-1, 3})});
  EXPECT_EQ(graph.add(Reshape{}, {x, target})->type.text(), "f32[past + 1,2*n,3]");
}

TEST(Reshape, ZeroSizes) {
  const Tensor empty(DType::f32, {0, 4});
  EXPECT_EQ(run_onnx("Reshape", 14, {empty, Tensor::ints(Ints{0, -1})})[0].shape(), (Shape{0, 4}));
  EXPECT_EQ(
      run_onnx("Reshape", 14, {empty, Tensor::ints(Ints{4, 0})}, {{"allowzero", int64_t{1}}})[0]
          .shape(),
      (Shape{4, 0}));
  EXPECT_EQ(run_onnx("Flatten", 13, {empty}, {{"axis", int64_t{0}}})[0].shape(), (Shape{1, 0}));
}

TEST(Reshape, WrongShapesAreNamed) {
  const Tensor x(DType::f32, {2, 3});
  try {
    run_onnx("Reshape", 5, {x, Tensor::ints(Ints{4, -1})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[2,3] cannot take the shape [4,-1]"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(run_onnx("Squeeze", 13, {x, Tensor::ints(Ints{0})}), Error);
  EXPECT_THROW(run_onnx("Unsqueeze", 13, {x, Tensor::ints(Ints{0, -4})}), Error);
}

TEST(Reshape, AttributesOfOldOpsets) {
  const Tensor x = Tensor::of<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_onnx("Reshape", 1, {x}, {{"shape", Ints{3, -1}}})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(run_onnx("Squeeze", 1, {x}, {{"axes", Ints{0}}})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(run_onnx("Squeeze", 11, {x})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(run_onnx("Unsqueeze", 11, {x}, {{"axes", Ints{-1, 0}}})[0].shape(),
            (Shape{1, 1, 2, 3, 1}));
  EXPECT_EQ(run_onnx("Concat", 1, {x, x})[0].shape(), (Shape{1, 4, 3}));
  const auto parts = run_onnx("Split", 2, {x}, {{"axis", int64_t{2}}, {"split", Ints{1, 2}}}, 2);
  EXPECT_TRUE(parts[1].identical(Tensor::of<float>({1, 2, 2}, {2, 3, 5, 6})));
}

TEST(Split, UnevenSymbolicPieces) {
  Graph graph;
  Value* x = symbolic(graph, "x", {"n", "7"});
  const auto columns = graph.add_node(Split{.axis = 1}, {x}, 3).outs;
  EXPECT_EQ(columns[0]->type.text(), "f32[n,3]");
  EXPECT_EQ(columns[2]->type.text(), "f32[n,1]");
  Value* even = symbolic(graph, "even", {"2*n"});
  EXPECT_EQ(graph.add_node(Split{}, {even}, 2).outs[1]->type.text(), "f32[n]");
}

TEST(Expand, KeepsWhatIsLargerOnEitherSide) {
  const Tensor x = Tensor::of<int32_t>({2, 1}, {1, 2});
  EXPECT_TRUE(run_onnx("Expand", 8, {x, Tensor::ints(Ints{2})})[0].identical(
      Tensor::of<int32_t>({2, 2}, {1, 1, 2, 2})));
  EXPECT_THROW(run_onnx("Expand", 8, {x, Tensor::ints(Ints{3, 3})}), Error);
}

}  // namespace
}  // namespace dais
