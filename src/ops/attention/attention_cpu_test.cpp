#include "ops/attention/attention.h"
#include "ops/run_op.h"
#include "runtime/plan_agreement_test.h"

namespace dais {
namespace {

struct Case {
  int64_t batch = 2, q_heads = 4, kv_heads = 4, length = 1, fresh = 1, past = 0, size = 8;
  bool joined = false, causal = false, present = false;
  Shape mask = {};
  bool boolean = false;
};

void check(const Case& c) {
  Graph graph;
  std::vector<Datum> data;
  const auto give = [&](Tensor tensor) {
    data.emplace_back(tensor);
    return graph.add_input(Type::of(tensor), "in" + std::to_string(data.size()));
  };
  const auto heads = [&](int64_t count, int64_t length, int seed) {
    return test_tensor(
        c.joined ? Shape{c.batch, length, count * c.size} : Shape{c.batch, count, length, c.size},
        seed);
  };
  Values in{give(heads(c.q_heads, c.length, 1)), give(heads(c.kv_heads, c.fresh, 2)),
            give(heads(c.kv_heads, c.fresh, 3))};
  in.push_back(nullptr);
  if (c.mask.rank() > 0) {
    Tensor mask = test_tensor(c.mask, 4);
    if (c.boolean) {
      Tensor bits(DType::boolean, c.mask);
      for (int64_t i = 0; i < bits.elements(); ++i)
        bits.storage<uint8_t>()[i] = mask.data<float>()[static_cast<size_t>(i)] > -0.5f;
      mask = bits;
    }
    in[3] = give(mask);
  }
  if (c.past > 0)
    for (const int seed : {5, 6})
      in.push_back(give(test_tensor({c.batch, c.kv_heads, c.past, c.size}, seed)));
  const Attention attrs{.is_causal = c.causal,
                        .kv_num_heads = c.joined ? c.kv_heads : 0,
                        .q_num_heads = c.joined ? c.q_heads : 0};
  graph.outputs = graph.add_node(attrs, in, c.present ? 3 : 1).outs;
  expect_rows_agree(graph, data, 3e-6);
}

TEST(AttentionRows, AgreeForManyQueries) {
  check({.length = 70, .fresh = 70, .size = 16});
  check({.length = 33, .fresh = 50, .joined = true, .mask = {2, 1, 1, 50}});
  check({.q_heads = 6, .kv_heads = 2, .length = 65, .fresh = 65, .size = 20, .causal = true});
  check({.length = 9, .fresh = 9, .past = 12, .present = true, .mask = {9, 21}});
  check({.length = 9, .fresh = 9, .past = 12, .causal = true, .mask = {4, 9, 21}, .boolean = true});
}

TEST(AttentionRows, AgreeForFewQueries) {
  check({.fresh = 1, .past = 100, .size = 64, .present = true});
  check({.q_heads = 6, .kv_heads = 2, .past = 37, .size = 20, .joined = true, .present = true});
  check({.length = 3, .fresh = 3, .past = 30, .causal = true, .present = true});
  check({.length = 2, .fresh = 11, .mask = {2, 4, 2, 11}, .boolean = true});
}

TEST(AttentionRows, RotaryAgrees) {
  for (const bool interleaved : {false, true}) {
    const Tensor x = test_tensor({2, 3, 5, 24}), cos = test_tensor({9, 12}, 2);
    const Tensor sin = test_tensor({9, 12}, 3);
    Tensor positions(DType::i64, Shape{2, 5});
    for (int64_t i = 0; i < 10; ++i)
      positions.data<int64_t>()[static_cast<size_t>(i)] = 9 - 1 - i % 9;
    Graph graph;
    Value* in = graph.add_input(Type::of(x), "x");
    Value* at = graph.add_input(Type::of(positions), "positions");
    graph.outputs = {graph.add(RotaryEmbedding{.interleaved = interleaved},
                               {in, graph.add_constant(cos), graph.add_constant(sin), at})};
    expect_rows_agree(graph, {x, positions}, 1e-6);
  }
}

TEST(AttentionRows, GroupedWithRotaryAgrees) {
  for (const int64_t length : {1, 6}) {
    const int64_t past = 7, total = past + length;
    const Tensor q = test_tensor({2, length, 48}), k = test_tensor({2, length, 16}, 2);
    const Tensor v = test_tensor({2, length, 16}, 3);
    const Tensor old_k = test_tensor({2, 2, past, 8}, 4), old_v = test_tensor({2, 2, past, 8}, 5);
    // The second example has one token less in its cache.
    const auto last = static_cast<int32_t>(total - 1);
    const Tensor lengths = Tensor::of<int32_t>({2}, {last, last - 1});
    const Tensor sum = Tensor::of<int32_t>({1}, {static_cast<int32_t>(total)});
    Graph graph;
    std::vector<Datum> data;
    Values in;
    for (const Tensor& tensor : {q, k, v, old_k, old_v, lengths}) {
      data.emplace_back(tensor);
      in.push_back(graph.add_input(Type::of(tensor), "in" + std::to_string(data.size())));
    }
    in.push_back(graph.add_constant(sum));
    in.push_back(graph.add_constant(test_tensor({20, 4}, 6)));
    in.push_back(graph.add_constant(test_tensor({20, 4}, 7)));
    const GroupQueryAttention attrs{.num_heads = 6, .kv_num_heads = 2, .do_rotary = true};
    graph.outputs = graph.add_node(attrs, in, 3).outs;
    expect_rows_agree(graph, data, 3e-6);
  }
}

}  // namespace
}  // namespace dais
