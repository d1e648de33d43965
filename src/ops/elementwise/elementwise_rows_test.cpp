#include <limits>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/fused/fused.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

constexpr RowTolerance kRounding{4e-7, 1e-7};

Tensor special_numbers() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0.0F,  -0.0F,  infinity, std::nanf(""), 1e-40F, 1e30F, -1e30F, 88.0F,
                            89.0F, -87.0F, -104.0F,  1.0F,          -1.0F,  0.5F,  2.5F,   -2.5F};
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

Attrs default_attrs(const ElementwiseRow& row) { return {row.op->attrs, row.op->attrs->make()}; }

int check_unary(const ElementwiseRow& row, const Tensor& x) {
  Graph graph;
  auto attrs = default_attrs(row);
  graph.outputs =
      graph.add_node(*row.op, std::move(attrs), {graph.add_input(Type::of(x), "x")}).outs;
  const Datum data[] = {x};
  // The tail of the normal distribution goes through a logarithm, which costs a digit.
  const bool tail = row.function == Scalar::gelu;
  return check_rows(graph, data, tail ? RowTolerance{2e-6, 3e-7} : kRounding);
}

TEST(ElementwiseRows, UnaryFunctions) {
  for (const auto& row : elementwise_rows()) {
    if (row.operands != 1 || !(row.kinds & real)) continue;
    EXPECT_GT(check_unary(row, sample<float>({3, 1001}, 6)), 0) << row.name;
    EXPECT_GT(check_unary(row, sample<float>({77}, 0.3)), 0) << row.name;
    EXPECT_GT(check_unary(row, special_numbers()), 0) << row.name;
    EXPECT_GT(check_unary(row, sample<double>({50}, 3)), 0) << row.name;
  }
}

TEST(ElementwiseRows, BinaryFunctionsBroadcast) {
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 3, 50}, {2, 3, 50}}, {{2, 3, 50}, {}},   {{}, {2, 3, 50}},
      {{5, 7, 9}, {7, 1}},      {{5, 7, 9}, {9}},   {{4, 1, 3, 700}, {1, 6, 1, 700}},
      {{3, 600}, {3, 1}},       {{40, 1}, {1, 30}}, {{2, 900, 1}, {2, 1, 600}},
      {{0, 3}, {1, 3}},         {{1}, {1}},         {{3, 0}, {3, 1}}};
  for (const auto& row : elementwise_rows()) {
    if (row.operands != 2 && row.operands != 0) continue;
    for (const auto& [left, right] : shapes) {
      const auto check = [&](Tensor a, Tensor b) {
        Graph graph;
        const Values in{graph.add_input(Type::of(a), "a"), graph.add_input(Type::of(b), "b")};
        auto attrs = default_attrs(row);
        if (row.function == Scalar::shift_left) attrs = Attrs::of(BitShift{"LEFT"});
        graph.outputs = graph.add_node(*row.op, std::move(attrs), in).outs;
        const Datum data[] = {a, b};
        EXPECT_GT(check_rows(graph, data, kRounding), 0) << row.name;
      };
      if (row.kinds & real) check(sample<float>(left), sample<float>(right, 3, 2));
      if (row.kinds & real) check(sample<double>(left), sample<double>(right, 3, 2));
      if (row.kinds & whole) check(sample<int64_t>(left, 40), sample<int64_t>(right, 9, 2));
      if (row.kinds & whole) check(sample<int32_t>(left, 1e9), sample<int32_t>(right, 9, 2));
      if (row.kinds & whole) check(sample<uint8_t>(left, 200), sample<uint8_t>(right, 90, 2));
      if (row.kinds & boolean) check(sample<bool>(left), sample<bool>(right, 3, 2));
    }
  }
}

TEST(ElementwiseRows, WhereAndClip) {
  const Tensor condition = sample<bool>({6, 1, 40}, 1, 3);
  EXPECT_GT(check_rows(Where{}, {condition, sample<float>({5, 40}), Tensor::scalar(-1.0F)}), 0);
  EXPECT_GT(check_rows(Where{}, {condition, Tensor::scalar(2.0F), sample<float>({6, 5, 1})}), 0);
  EXPECT_GT(check_rows(Where{}, {condition, sample<int64_t>({40}), sample<int64_t>({1})}), 0);
  EXPECT_GT(check_rows(Where{}, {condition, sample<Float16>({40}), sample<Float16>({1})}), 0);
  EXPECT_GT(check_rows(Clip{}, {sample<float>({100}), Tensor::scalar(-1.0F), Tensor::scalar(2.0F)}),
            0);
  EXPECT_GT(check_rows(Clip{}, {sample<float>({100}), Tensor::scalar(-1.0F)}), 0);
  EXPECT_GT(check_rows(Clip{}, {sample<int32_t>({100}), Tensor(), Tensor::scalar<int32_t>(2)}), 0);
}

TEST(ElementwiseRows, CastsBetweenAllTypes) {
  using Types = DTypes<DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32,
                       DType::i16, DType::i8, DType::u32, DType::u16, DType::u8, DType::boolean>;
  [&]<DType... kinds>(DTypes<kinds...>) {
    const auto from = [&]<DType source>() {
      using T = typename ElementOf<source>::Type;
      const auto to = [&](DType target) {
        if (target == source) return;
        EXPECT_GT(check_rows(Cast{.to = target}, {sample<T>({301}, 100)}), 0)
            << dtype_name(source) << " to " << dtype_name(target);
      };
      (to(kinds), ...);
    };
    (from.template operator()<kinds>(), ...);
  }
  (Types{});
  for (const DType target : {DType::i64, DType::i32, DType::u8, DType::f16, DType::bf16})
    EXPECT_GT(check_rows(Cast{.to = target}, {special_numbers()}), 0) << dtype_name(target);
}

TEST(ElementwiseRows, SmallFloatsRoundOnce) {
  std::vector<Float16> halves;
  for (int i = -40; i < 40; ++i) halves.emplace_back(static_cast<float>(i) * 0.37F);
  const Tensor x = Tensor::of<Float16>({80}, std::span<const Float16>(halves));
  EXPECT_GT(check_rows(Mul{}, {x, x}), 0);
  EXPECT_GT(check_rows(Sigmoid{}, {x}, {1e-3, 1e-7}), 0);
}

/// (a * b + c) with a sigmoid of the product beside it: two outputs, one used again.
TEST(ElementwiseRows, FusedChain) {
  for (const Shape& c_shape : {Shape{}, Shape{300}, Shape{4, 1}, Shape{4, 300}}) {
    auto body = std::make_unique<Graph>();
    const Type full = Type::tensor(DType::f32, Dims{4, 300});
    const Tensor c_data = sample<float>(c_shape, 2, 5);
    Value* a = body->add_input(full, "a");
    Value* b = body->add_input(Type::tensor(DType::f32, Dims{300}), "b");
    Value* c = body->add_input(Type::of(c_data), "c");
    Value* product = body->add(Mul{}, {a, b});
    Value* gate = body->add(Sigmoid{}, {product});
    Value* sum = body->add(Add{}, {gate, c});
    Value* truth = body->add(Less{}, {sum, a});
    body->outputs = {gate, body->add(Where{}, {truth, a, sum})};
    Graph graph;
    const Values in{graph.add_input(full, "a"), graph.add_input(b->type, "b"),
                    graph.add_input(c->type, "c")};
    std::vector<std::unique_ptr<Graph>> regions;
    regions.push_back(std::move(body));
    graph.outputs =
        graph.add_node(Fused::op, Attrs::of(Fused{}), in, 2, {}, std::move(regions)).outs;
    const Datum data[] = {sample<float>({4, 300}), sample<float>({300}, 3, 2), c_data};
    EXPECT_GT(check_rows(graph, data, kRounding), 0);
  }
}

}  // namespace
}  // namespace dais
