#include <gtest/gtest.h>

#include <algorithm>

#include "api/compile.h"
#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/run_op.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// A graph under construction, with short names for what exporters write.
struct Writer {
  Graph graph;
  std::vector<Datum> data;

  Value* input(const Shape& shape) {
    data.emplace_back(test_tensor(shape, static_cast<int>(data.size()) + 1));
    return graph.add_input(Type::of(data.back().tensor), "in" + std::to_string(data.size()));
  }
  Value* number(float value) { return graph.add_constant(Tensor::scalar(value)); }
  Value* ints(std::initializer_list<int64_t> values) {
    return graph.add_constant(Tensor::ints(std::vector<int64_t>(values)));
  }
  Value* weights(const Shape& shape) { return graph.add_constant(test_tensor(shape, 99)); }
  template <typename Struct>
  Value* add(Struct attrs, Values in) {
    return graph.add(std::move(attrs), std::move(in));
  }
  Value* turned(Value* x, std::vector<int64_t> perm) {
    return add(Transpose{.perm = std::move(perm)}, {x});
  }
};

/// After the portable passes `count` nodes of this op are left, and none of the ops it replaced
/// gives other results.
void expect_recognized(Writer& w, const Op& op, size_t count, double tolerance = 1e-5) {
  const auto wanted = evaluate(w.graph, w.data);
  CompileOptions options;
  options.optimize = Optimize::portable;
  const auto graph = w.graph.clone();
  optimize(*graph, options);
  size_t found = 0;
  for (const auto& node : graph->nodes()) found += node->op == &op;
  EXPECT_EQ(found, count) << graph->text();
  const auto got = evaluate(*graph, w.data);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_LE(test_distance(got[i].tensor, wanted[i].tensor), tolerance);
}

TEST(Recognize, GeluInBothForms) {
  Writer w;
  Value* x = w.input({3, 7});
  Value* erf = w.add(Erf{}, {w.add(Div{}, {x, w.number(1.41421354f)})});
  Value* product = w.add(Mul{}, {x, w.add(Add{}, {erf, w.number(1)})});
  w.graph.outputs = {w.add(Mul{}, {product, w.number(0.5f)})};
  Value* cube = w.add(Mul{}, {w.add(Pow{}, {x, w.number(3)}), w.number(0.044715f)});
  Value* inner = w.add(Mul{}, {w.number(0.797884583f), w.add(Add{}, {x, cube})});
  Value* gate = w.add(Add{}, {w.number(1), w.add(Tanh{}, {inner})});
  w.graph.outputs.push_back(w.add(Mul{}, {w.add(Mul{}, {w.number(0.5f), x}), gate}));
  expect_recognized(w, Gelu::op, 2);
}

TEST(Recognize, OtherProductsStay) {
  Writer w;
  Value *x = w.input({3, 7}), *y = w.input({3, 7});
  w.graph.outputs = {w.add(Mul{}, {x, w.add(Sigmoid{}, {y})})};
  expect_recognized(w, Swish::op, 0);
  w.graph.outputs = {w.add(Mul{}, {x, w.add(Sigmoid{}, {x})})};
  expect_recognized(w, Swish::op, 1);
}

TEST(Recognize, Norms) {
  Writer w;
  Value* x = w.input({2, 3, 8});
  const auto mean = [&](Value* v) { return w.add(ReduceMean{}, {v, w.ints({-1})}); };
  const auto root = [&](Value* v) {
    Value* square = mean(w.add(Pow{}, {v, w.number(2)}));
    return w.add(Sqrt{}, {w.add(Add{}, {square, w.number(1e-5f)})});
  };
  Value* d = w.add(Sub{}, {x, mean(x)});
  Value* scaled = w.add(Mul{}, {w.add(Div{}, {d, root(d)}), w.weights({8})});
  w.graph.outputs = {w.add(Add{}, {scaled, w.weights({8})})};
  expect_recognized(w, LayerNormalization::op, 1);
  Value* divided = w.add(Mul{}, {x, w.add(Reciprocal{}, {root(x)})});
  w.graph.outputs = {w.add(Mul{}, {w.weights({8}), divided})};
  expect_recognized(w, RMSNormalization::op, 1);
}

Value* split(Writer& w, Value* x, int64_t heads, int64_t size) {
  return w.turned(w.add(Reshape{}, {x, w.ints({0, 0, heads, size})}), {0, 2, 1, 3});
}

TEST(Recognize, AttentionWithJoinedHeads) {
  Writer w;
  Value *q = w.input({2, 5, 12}), *k = w.input({2, 6, 12}), *v = w.input({2, 6, 12});
  Value* mask = w.input({2, 1, 1, 6});
  Value* keys = w.turned(w.add(Reshape{}, {k, w.ints({0, 0, 3, 4})}), {0, 2, 3, 1});
  Value* scores = w.add(Div{}, {w.add(MatMul{}, {split(w, q, 3, 4), keys}), w.number(2)});
  Value* weights = w.add(Softmax{}, {w.add(Add{}, {scores, mask})});
  Value* out = w.turned(w.add(MatMul{}, {weights, split(w, v, 3, 4)}), {0, 2, 1, 3});
  w.graph.outputs = {w.add(Reshape{}, {out, w.ints({0, 0, 12})})};
  expect_recognized(w, Attention::op, 1);
  expect_recognized(w, Transpose::op, 0);
}

TEST(Recognize, AttentionWithPastAndRepeatedHeads) {
  Writer w;
  Value* q = w.input({2, 4, 3, 8});
  const auto with_past = [&] {
    return w.add(Concat{.axis = -2}, {w.input({2, 2, 5, 8}), w.input({2, 2, 3, 8})});
  };
  const auto repeated = [&](Value* x) {
    Value* open = w.add(Unsqueeze{}, {x, w.ints({2})});
    Value* wide = w.add(Expand{}, {open, w.ints({2, 2, 2, 8, 8})});
    return w.add(Reshape{}, {wide, w.ints({2, 4, 8, 8})});
  };
  Value *k = with_past(), *v = with_past();
  Value* product = w.add(MatMul{}, {q, w.turned(repeated(k), {0, 1, 3, 2})});
  Value* visible = w.add(Less{}, {w.input({3, 8}), w.number(0.5f)});
  Value* scores =
      w.add(Where{}, {visible, w.add(Mul{}, {product, w.number(0.3f)}), w.number(-3.4e38f)});
  w.graph.outputs = {w.add(MatMul{}, {w.add(Softmax{.axis = 3}, {scores}), repeated(v)}), k, v};
  expect_recognized(w, Attention::op, 1);
  expect_recognized(w, Concat::op, 0);
}

TEST(Recognize, Rotary) {
  Writer w;
  Value* x = w.input({2, 3, 5, 8});
  const auto table = [&] {
    Value* wide = w.add(Unsqueeze{}, {w.input({2, 5, 4}), w.ints({1})});
    return w.add(Concat{.axis = -1}, {wide, wide});
  };
  Value *cos = table(), *sin = table();
  const auto part = [&](int64_t first, int64_t last) {
    return w.add(Slice{}, {x, w.ints({first}), w.ints({last}), w.ints({3})});
  };
  Value* turned = w.add(Concat{.axis = -1}, {w.add(Neg{}, {part(4, INT64_MAX)}), part(0, 4)});
  w.graph.outputs = {w.add(Add{}, {w.add(Mul{}, {x, cos}), w.add(Mul{}, {turned, sin})})};
  expect_recognized(w, RotaryEmbedding::op, 1);
}

TEST(Recognize, ProductBetweenReshapes) {
  Writer w;
  Value* x = w.input({2, 3, 8});
  Value* flat = w.add(Reshape{}, {x, w.ints({-1, 8})});
  Value* product = w.add(Gemm{}, {flat, w.weights({8, 5}), w.weights({5})});
  w.graph.outputs = {w.add(Reshape{}, {product, w.ints({2, 3, 5})})};
  expect_recognized(w, MatMul::op, 1);
}

}  // namespace
}  // namespace dais
