#include <gtest/gtest.h>

#include <set>

#include "backends/cpu/isa.h"
#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"
#include "runtime/row_test.h"
#include "runtime/session.h"

namespace dais {
namespace {

Type floats(Dims dims) { return Type::tensor(DType::f32, std::move(dims)); }

Session session_of(std::unique_ptr<Graph> graph, std::vector<StatePair> states) {
  PlanOptions options{.threads = 1, .isa = cpu::isa()};
  options.states = std::move(states);
  return Session(Plan::create(std::move(graph), options));
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

TEST(RuntimeState, NewValuesAreWrittenOverOldOnes) {
  auto graph = std::make_unique<Graph>();
  Value* w = graph->add_input(floats({4}), "w");
  Value* step = graph->add_input(floats({4}), "step");
  graph->outputs = {graph->add(Sub{}, {w, step}, "w_next")};
  Session session = session_of(std::move(graph), {{0, 0}});
  EXPECT_TRUE(session.plan().states()[0].in_place);
  Tensor memory = Tensor::of<float>({4}, {1, 2, 3, 4});
  session.bind_state(0, memory);
  const Tensor one = Tensor::of<float>({4}, {1, 1, 1, 1});
  for (int run = 0; run < 3; ++run) {
    const std::vector<Datum> inputs{Datum(), one};
    const auto& results = session.run(inputs);
    EXPECT_EQ(results[0].tensor.raw(), memory.raw());
  }
  EXPECT_EQ(values_of(memory), (std::vector<float>{-2, -1, 0, 1}));
}

TEST(RuntimeState, AGivenValueStartsTheStateAnew) {
  auto graph = std::make_unique<Graph>();
  Value* count = graph->add_input(floats({1}), "count");
  graph->outputs = {
      graph->add(Add{}, {graph->add_constant(Tensor::of<float>({1}, {1})), count}, "next")};
  Session session = session_of(std::move(graph), {{0, 0}});
  EXPECT_TRUE(session.plan().states()[0].in_place);
  const std::vector<Datum> none(1);
  EXPECT_THROW(session.run(none), Error);
  const Tensor start = Tensor::of<float>({1}, {5});
  const std::vector<Datum> given{start};
  session.run(given);
  session.run(none);
  EXPECT_EQ(values_of(session.state(0)), std::vector<float>{7});
  EXPECT_EQ(values_of(start), std::vector<float>{5});
  session.run(given);
  EXPECT_EQ(values_of(session.state(0)), std::vector<float>{6});
}

/// The update stands before a reader of the old value and is moved behind it.
TEST(RuntimeState, ReadersOfTheOldValueRunFirst) {
  auto graph = std::make_unique<Graph>();
  Value* w = graph->add_input(floats({2, 2}), "w");
  Value* x = graph->add_input(floats({2, 2}), "x");
  Value* next = graph->add(Add{}, {x, w}, "w_next");
  Value* shown = graph->add(Neg{}, {next}, "shown");
  Value* y = graph->add(MatMul{}, {x, w}, "y");
  graph->outputs = {y, next, shown};
  Session session = session_of(std::move(graph), {{0, 1}});
  EXPECT_TRUE(session.plan().states()[0].in_place);
  const Tensor eye = Tensor::of<float>({2, 2}, {1, 0, 0, 1});
  std::vector<Datum> inputs{Tensor::of<float>({2, 2}, {1, 2, 3, 4}), eye};
  session.run(inputs);
  inputs[0] = Datum();
  const auto& results = session.run(inputs);
  EXPECT_EQ(values_of(results[0].tensor), (std::vector<float>{2, 2, 3, 5}));
  EXPECT_EQ(values_of(results[1].tensor), (std::vector<float>{3, 2, 3, 6}));
  EXPECT_EQ(values_of(results[2].tensor), (std::vector<float>{-3, -2, -3, -6}));
}

TEST(RuntimeState, AReaderOfBothValuesMakesACopy) {
  auto graph = std::make_unique<Graph>();
  Value* w = graph->add_input(floats({2}), "w");
  Value* next = graph->add(Add{}, {w, graph->add_constant(Tensor::of<float>({2}, {1, 1}))});
  Value* both = graph->add(Mul{}, {w, next}, "both");
  graph->outputs = {next, both, w};
  Session session = session_of(std::move(graph), {{0, 0}});
  EXPECT_FALSE(session.plan().states()[0].in_place);
  std::vector<Datum> inputs{Tensor::of<float>({2}, {1, 2})};
  session.run(inputs);
  inputs[0] = Datum();
  const auto& results = session.run(inputs);
  EXPECT_EQ(values_of(results[0].tensor), (std::vector<float>{3, 4}));
  EXPECT_EQ(values_of(results[1].tensor), (std::vector<float>{6, 12}));
  EXPECT_EQ(values_of(results[2].tensor), (std::vector<float>{2, 3}));
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{3, 4}));
}

TEST(RuntimeState, StatesMayExchangeTheirValues) {
  auto graph = std::make_unique<Graph>();
  Value* a = graph->add_input(floats({2}), "a");
  Value* b = graph->add_input(floats({2}), "b");
  graph->outputs = {b, a};
  Session session = session_of(std::move(graph), {{0, 0}, {1, 1}});
  const std::vector<Datum> inputs{Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({2}, {3, 4})};
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{3, 4}));
  EXPECT_EQ(values_of(session.state(1)), (std::vector<float>{1, 2}));
}

/// Each new value is made of the other's old one: no order writes both in place.
TEST(RuntimeState, CyclesAreBrokenByACopy) {
  auto graph = std::make_unique<Graph>();
  Value* a = graph->add_input(floats({2}), "a");
  Value* b = graph->add_input(floats({2}), "b");
  Value* a_next = graph->add(Neg{}, {b}, "a_next");
  Value* b_next = graph->add(Abs{}, {a}, "b_next");
  graph->outputs = {a_next, b_next};
  Session session = session_of(std::move(graph), {{0, 0}, {1, 1}});
  std::vector<Datum> inputs{Tensor::of<float>({2}, {-1, 2}), Tensor::of<float>({2}, {3, -4})};
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{-3, 4}));
  EXPECT_EQ(values_of(session.state(1)), (std::vector<float>{1, 2}));
  inputs = {Datum(), Datum()};
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{-1, -2}));
  EXPECT_EQ(values_of(session.state(1)), (std::vector<float>{3, 4}));
}

TEST(RuntimeState, ProductsAndOpenSizesAreCommittedToo) {
  auto graph = std::make_unique<Graph>();
  const Dim n = Dim::symbol("n");
  Value* x = graph->add_input(floats({n, n}), "x");
  graph->outputs = {graph->add(MatMul{}, {x, x}, "next")};
  Session session = session_of(std::move(graph), {{0, 0}});
  std::vector<Datum> inputs{Tensor::of<float>({2, 2}, {1, 1, 0, 1})};
  session.run(inputs);
  inputs[0] = Datum();
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{1, 4, 0, 1}));
  inputs[0] = Tensor::of<float>({1, 1}, {3});
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), std::vector<float>{9});
}

/// One layer: q, k, v of this step, past keys and values; the present ones through a reshape-like
/// node, as files have it.
std::unique_ptr<Graph> decoder(bool keys_read_again) {
  auto graph = std::make_unique<Graph>();
  const Dim batch = Dim::symbol("batch"), fresh = Dim::symbol("new"), past = Dim::symbol("past");
  Values in;
  for (const int heads : {4, 2, 2})
    in.push_back(graph->add_input(floats({batch, heads, fresh, 8}), {}));
  in.push_back(nullptr);
  for (int i = 0; i < 2; ++i) in.push_back(graph->add_input(floats({batch, 2, past, 8}), {}));
  const Values outs = graph->add_node(Attention{.is_causal = true}, in, 3).outs;
  graph->outputs = {outs[0], graph->add(Identity{}, {outs[1]}), outs[2]};
  if (keys_read_again) graph->outputs.push_back(graph->add(Neg{}, {outs[1]}));
  return graph;
}

/// Steps of a bound session against one that is given its past each time.
void decode(bool keys_read_again) {
  Session bound = session_of(decoder(keys_read_again), {{3, 1}, {4, 2}});
  Session plain = session_of(decoder(keys_read_again), {});
  EXPECT_EQ(bound.plan().states()[0].growing_axis, keys_read_again ? -1 : 2);
  EXPECT_EQ(bound.plan().states()[1].growing_axis, 2);
  bound.reserve_state(3, 20);
  Tensor past[2] = {sample<float>({2, 2, 5, 8}, 1, 7), sample<float>({2, 2, 5, 8}, 1, 8)};
  for (uint64_t step = 0; step < 40; ++step) {
    const int64_t fresh = step % 10 == 3 ? 6 : 1;
    std::vector<Datum> inputs;
    for (const int64_t heads : {4, 2, 2})
      inputs.emplace_back(sample<float>({2, heads, fresh, 8}, 1, 3 * step + inputs.size()));
    std::vector<Datum> all = inputs;
    for (const Tensor& cache : past) all.emplace_back(cache);
    const auto& wanted = plain.run(all);
    if (step == 0 || step == 20)
      inputs = all;
    else
      inputs.resize(5);
    const auto& got = bound.run(inputs);
    EXPECT_TRUE(bound.refused_steps().empty());
    EXPECT_TRUE(got[0].tensor.identical(wanted[0].tensor)) << step;
    EXPECT_FALSE(got[2].has_value());
    for (size_t i = 0; i < 2; ++i) {
      past[i] = wanted[i + 1].tensor.clone();
      EXPECT_TRUE(bound.state(i + 3).identical(past[i])) << step;
    }
  }
}

TEST(RuntimeState, CachesGrowWithoutCopies) { decode(false); }
TEST(RuntimeState, ACacheThatIsReadElsewhereIsCopied) { decode(true); }

TEST(RuntimeState, ReferencesTakeGrowingStatesToo) {
  PlanOptions options{.threads = 1, .kernels = false};
  options.states = {{3, 1}, {4, 2}};
  Session session(Plan::create(decoder(false), options));
  EXPECT_EQ(session.plan().states()[0].growing_axis, -1);
  std::vector<Datum> inputs;
  for (const int64_t heads : {4, 2, 2}) inputs.emplace_back(sample<float>({1, heads, 1, 8}));
  for (int i = 0; i < 2; ++i) inputs.emplace_back(Tensor(DType::f32, {1, 2, 0, 8}));
  session.run(inputs);
  inputs[3] = inputs[4] = Datum();
  session.run(inputs);
  EXPECT_EQ(session.state(3).shape(), (Shape{1, 2, 2, 8}));
}

TEST(RuntimeState, WrongPairsAreRefused) {
  const auto graph = [] {
    auto out = std::make_unique<Graph>();
    Value* a = out->add_input(floats({2}), "a");
    Value* b = out->add_input(Type::tensor(DType::i64, Dims{2}), "b");
    out->outputs = {out->add(Neg{}, {a}), out->add(Neg{}, {b})};
    return out;
  };
  EXPECT_THROW(session_of(graph(), {{2, 0}}), Error);
  EXPECT_THROW(session_of(graph(), {{0, 2}}), Error);
  EXPECT_THROW(session_of(graph(), {{0, 1}}), Error);
  EXPECT_THROW(session_of(graph(), {{0, 0}, {0, 0}}), Error);
  Session session = session_of(graph(), {{0, 0}});
  EXPECT_THROW(session.bind_state(1, Tensor::of<int64_t>({2}, {1, 2})), Error);
  EXPECT_THROW(session.bind_state(0, Tensor::of<int64_t>({2}, {1, 2})), Error);
}

/// A product reads the whole cache, so that it cannot lie in a buffer with room for more.
TEST(RuntimeState, CachesThatNoRowLetsGrowTakeTurns) {
  auto graph = std::make_unique<Graph>();
  Value* past = graph->add_input(floats({Dim::symbol("past"), 2}), "past");
  Value* now = graph->add_input(floats({1, 2}), "now");
  Value* present = graph->add(Concat{.axis = 0}, {past, now}, "present");
  Value* flat = graph->add(
      Reshape{}, {present, graph->add_constant(Tensor::ints(std::vector<int64_t>{-1}))}, "flat");
  Value* y = graph->add(MatMul{}, {now, graph->add(Transpose{{1, 0}}, {present})}, "y");
  graph->outputs = {y, present, flat};
  Session session = session_of(std::move(graph), {{0, 1}});
  EXPECT_FALSE(session.plan().states()[0].in_place);
  std::vector<Datum> inputs{Tensor(DType::f32, {0, 2}), Tensor()};
  std::set<const void*> places;
  std::vector<float> wanted;
  for (int run = 0; run < 200; ++run) {
    const auto number = static_cast<float>(run);
    inputs[1] = Tensor::of<float>({1, 2}, {number, 1});
    const auto& results = session.run(inputs);
    inputs[0] = Datum();
    wanted.insert(wanted.end(), {number, 1});
    ASSERT_EQ(values_of(results[1].tensor), wanted);
    ASSERT_EQ(values_of(results[2].tensor), wanted);
    ASSERT_EQ(values_of(session.state(0)), wanted);
    ASSERT_EQ(values_of(results[0].tensor).back(), number * number + 1);
    places.insert(results[1].tensor.raw());
  }
  // Two buffers, made larger now and then.
  EXPECT_LT(places.size(), 20U);
}

TEST(RuntimeState, GivenMemoryIsCopiedToWhereNothingGrows) {
  auto graph = std::make_unique<Graph>();
  Value* past = graph->add_input(floats({Dim::symbol("past")}), "past");
  Value* more = graph->add_input(floats({Dim::symbol("more")}), "more");
  graph->outputs = {graph->add(Concat{.axis = 0}, {past, more}, "present")};
  Session session = session_of(std::move(graph), {{0, 0}});
  const Tensor memory = Tensor::of<float>({2}, {1, 2});
  session.bind_state(0, memory);
  std::vector<Datum> inputs{Datum(), Tensor(DType::f32, {0})};
  session.run(inputs);
  EXPECT_EQ(session.state(0).raw(), memory.raw());
  inputs[1] = Tensor::of<float>({1}, {3});
  session.run(inputs);
  EXPECT_EQ(values_of(session.state(0)), (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace dais
