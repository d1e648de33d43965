#include "api/compile.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/matmul/matmul.h"
#include "ops/run_op.h"
#include "runtime/plan_agreement_test.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

/// A product of random matrices; B as a constant or an input.
void check_product(const Shape& a, const Shape& b, bool constant) {
  Graph graph;
  const Tensor left = test_tensor(a, 1), right = test_tensor(b, 2);
  std::vector<Datum> inputs{left};
  Value* x = graph.add_input(Type::of(left), "x");
  Value* y = constant ? graph.add_constant(right) : graph.add_input(Type::of(right), "y");
  if (!constant) inputs.emplace_back(right);
  graph.outputs = {graph.add(MatMul{}, {x, y})};
  expect_rows_agree(graph, inputs, 2e-6);
}

TEST(ProductRows, AgreeForSmallAndTallMatrices) {
  for (const bool constant : {true, false})
    for (const int64_t rows : {1, 2, 3, 5, 12, 13, 31, 33, 70, 97})
      for (const int64_t columns : {1, 31, 32, 65, 130})
        check_product({rows, 37}, {37, columns}, constant);
}

TEST(ProductRows, AgreeAcrossDepthAndRowBlocks) {
  check_product({530, 300}, {300, 70}, true);
  check_product({250, 1600}, {1600, 40}, true);
  check_product({64, 1}, {1, 64}, true);
  check_product({64, 0}, {0, 64}, false);
}

TEST(ProductRows, AgreeForBatchesAndVectors) {
  check_product({2, 3, 40, 16}, {2, 3, 16, 70}, false);
  check_product({5, 1, 7, 9}, {4, 9, 6}, false);
  check_product({3, 40, 16}, {3, 16, 5}, true);
  check_product({9}, {9, 6}, true);
  check_product({4, 9}, {9}, false);
  check_product({6, 9}, {9, 0}, false);
}

TEST(ProductRows, InfinitiesAndNanStay) {
  Tensor a = test_tensor({64, 64}), b = test_tensor({64, 64}, 3);
  a.data<float>()[5] = std::numeric_limits<float>::infinity();
  b.data<float>()[64 * 9 + 3] = std::numeric_limits<float>::quiet_NaN();
  Graph graph;
  graph.outputs = {graph.add(MatMul{}, {graph.add_input(Type::of(a), "a"), graph.add_constant(b)})};
  const auto wanted = evaluate(graph, std::vector<Datum>{a});
  Session session(Plan::create(graph.clone(), {.threads = 2, .isa = cpu::isa()}));
  const Tensor& got = session.run(std::vector<Datum>{a})[0].tensor;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double x = got.to_double(i), y = wanted[0].tensor.to_double(i);
    EXPECT_EQ(std::isnan(x), std::isnan(y));
    EXPECT_EQ(std::isinf(x), std::isinf(y));
  }
}

TEST(ProductRows, GemmFormsAgree) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const bool constant : {false, true}) {
        Graph graph;
        const Tensor a = test_tensor(trans_a ? Shape{21, 50} : Shape{50, 21}, 1);
        const Tensor b = test_tensor(trans_b ? Shape{40, 21} : Shape{21, 40}, 2);
        const Tensor c = test_tensor({40}, 3);
        std::vector<Datum> inputs{a, c};
        Value* x = graph.add_input(Type::of(a), "a");
        Value* bias = graph.add_input(Type::of(c), "c");
        Value* y = constant ? graph.add_constant(b) : graph.add_input(Type::of(b), "b");
        if (!constant) inputs.emplace_back(b);
        graph.outputs = {
            graph.add(Gemm{.alpha = 0.5f, .trans_a = trans_a, .trans_b = trans_b}, {x, y, bias})};
        expect_rows_agree(graph, inputs, 2e-6);
      }
}

TEST(ProductRows, StepsBehindTheProductAgree) {
  for (const int64_t rows : {1, 7, 60}) {
    auto body = std::make_unique<Graph>();
    const Tensor a = test_tensor({2, rows, 20}, 1), residual = test_tensor({2, rows, 45}, 2);
    Value* x = body->add_input(Type::of(a), "x");
    Value* other = body->add_input(Type::of(residual), "residual");
    const auto add = [&](auto op, Values in) { return body->add(op, std::move(in)); };
    Value* y = add(MatMul{}, {x, body->add_constant(test_tensor({20, 45}, 3))});
    y = add(Mul{}, {y, body->add_constant(Tensor::scalar(0.1f))});
    y = add(Add{}, {body->add_constant(test_tensor({45}, 4)), y});
    y = add(Gelu{}, {y});
    y = add(Sub{}, {y, body->add_constant(Tensor::scalar(0.25f))});
    y = add(Mul{}, {other, y});
    y = add(Swish{.alpha = 1}, {y});
    y = add(Add{}, {y, other});
    y = add(Gelu{.approximate = "tanh"}, {y});
    body->outputs = {y};
    const auto plain = body->clone();
    Graph graph;
    std::vector<std::unique_ptr<Graph>> regions;
    regions.push_back(std::move(body));
    const Values in{graph.add_input(Type::of(a), "x"), graph.add_input(Type::of(residual), "r")};
    graph.outputs =
        graph.add_node(Fused::op, Attrs::of(Fused{}), in, 1, {}, std::move(regions)).outs;
    expect_rows_agree(graph, {a, residual}, 3e-6, plain.get());
  }
}

/// Whatever of the result's sizes an operand has, and 1 elsewhere or nothing in front.
TEST(ProductRows, OperandsOfEveryBroadcastAgree) {
  const Shape whole{2, 3, 20, 45};
  const Tensor a = test_tensor({2, 3, 20, 16}, 1), b = test_tensor({16, 45}, 2);
  for (unsigned kept = 0; kept < 16; ++kept)
    for (const size_t skipped : {0, 1, 2, 3})
      for (const bool product : {false, true}) {
        Shape sizes;
        for (size_t axis = skipped; axis < 4; ++axis)
          sizes.push_back((kept >> axis) & 1 ? whole[axis] : 1);
        const Tensor operand = test_tensor(sizes, 3);
        Graph graph;
        Value* x = graph.add_input(Type::of(a), "a");
        Value* with = graph.add_input(Type::of(operand), "operand");
        Value* y = graph.add(MatMul{}, {x, graph.add_constant(b)});
        y = product ? graph.add(Mul{}, {y, with}) : graph.add(Add{}, {with, y});
        graph.outputs = {graph.add(Relu{}, {y})};
        Session tuned(compile(graph.clone()).plan);
        CompileOptions off;
        off.optimize = Optimize::off;
        Session plain(compile(graph.clone(), off).plan);
        const std::vector<Datum> inputs{a, operand};
        const auto wanted = plain.run(inputs), got = tuned.run(inputs);
        expect_close(got[0].tensor, wanted[0].tensor, {1e-5, 1e-5}, sizes.text());
      }
}

/// Results are sums in f32, rounded once: they are one unit of bf16 apart where a sum lies between
/// two.
TEST(ProductRows, HalvesAgree) {
  if (cpu::machine_isa() < Isa::amx) GTEST_SKIP() << "needs the tile unit";
  const RowTolerance tolerance{.relative = 0x1p-8, .absolute = 1e-4};
  const auto check = [&](const Tensor& a, const Tensor& b, const Tensor* bias, auto op) {
    Graph graph;
    std::vector<Datum> inputs{a, b};
    Values in{graph.add_input(Type::of(a), "a"), graph.add_input(Type::of(b), "b")};
    if (bias) {
      inputs.emplace_back(*bias);
      in.push_back(graph.add_input(Type::of(*bias), "c"));
    }
    graph.outputs = {graph.add(op, in)};
    EXPECT_GT(check_rows(graph, inputs, tolerance), 0);
  };
  const Tensor bias = in_half(test_tensor({70}, 3));
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      check(in_half(test_tensor(trans_a ? Shape{90, 50} : Shape{50, 90}, 1)),
            in_half(test_tensor(trans_b ? Shape{70, 90} : Shape{90, 70}, 2)), &bias,
            Gemm{.trans_a = trans_a, .trans_b = trans_b});
  check(in_half(test_tensor({3, 33, 40}, 1)), in_half(test_tensor({40, 35}, 2)), nullptr, MatMul{});
  check(in_half(test_tensor({2, 3, 33, 40}, 1)), in_half(test_tensor({2, 1, 40, 35}, 2)), nullptr,
        MatMul{});
}

void check_nbits(int64_t rows, int64_t depth, int64_t columns, int64_t block, bool zeros,
                 int64_t accuracy, double tolerance) {
  Graph graph;
  const Tensor a = test_tensor({rows, depth});
  const int64_t blocks = (depth + block - 1) / block;
  const auto bytes = [&](const Shape& shape, uint32_t state) {
    Tensor out(DType::u8, shape);
    for (uint8_t& value : out.data<uint8_t>()) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<uint8_t>(state >> 24);
    }
    return out;
  };
  Tensor scales = test_tensor({columns * blocks}, 5);
  Values in{graph.add_input(Type::of(a), "a"),
            graph.add_constant(bytes({columns, blocks, block / 2}, 7)), graph.add_constant(scales)};
  if (zeros) in.push_back(graph.add_constant(bytes({columns, (blocks + 1) / 2}, 9)));
  graph.outputs = {graph.add(
      MatMulNBits{
          .depth = depth, .columns = columns, .block_size = block, .accuracy_level = accuracy},
      in)};
  expect_rows_agree(graph, {a}, tolerance);
}

TEST(NbitsRows, Agree) {
  for (const int64_t rows : {1, 5, 9}) {
    check_nbits(rows, 96, 20, 32, false, 0, 2e-6);
    check_nbits(rows, 80, 33, 16, true, 0, 2e-6);
    // Activations rounded to 8 bits.
    check_nbits(rows, 96, 20, 32, false, 4, 1e-2);
    check_nbits(rows, 100, 33, 64, true, 4, 1e-2);
  }
}

}  // namespace
}  // namespace dais
