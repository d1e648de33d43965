#include <gtest/gtest.h>

#include "backends/cpu/isa.h"
#include "ops/rnn/rnn.h"
#include "ops/run_op.h"
#include "runtime/session.h"

namespace dais {
namespace {

Tensor values(const Shape& shape, float scale, int seed) {
  Tensor out = test_tensor(shape, seed);
  for (float& value : out.data<float>()) value *= scale;
  return out;
}

struct Case {
  int64_t gates = 1, length = 1, batch = 1, input = 3, hidden = 5, directions = 1;
  bool batch_first = false, bias = true, lengths = false, states = true, peepholes = false;
  bool constant = true;
};

/// Runs the node with rows of every level and compares with its reference.
template <typename S>
void check(const S& attrs, const Case& c) {
  const int64_t rows = c.gates * c.hidden;
  const Shape x =
      c.batch_first ? Shape{c.batch, c.length, c.input} : Shape{c.length, c.batch, c.input};
  const Shape state = c.batch_first ? Shape{c.batch, c.directions, c.hidden}
                                    : Shape{c.directions, c.batch, c.hidden};
  std::vector<Tensor> tensors{values(x, 1, 1), values({c.directions, rows, c.input}, 0.2f, 2),
                              values({c.directions, rows, c.hidden}, 0.2f, 3)};
  tensors.push_back(c.bias ? values({c.directions, 2 * rows}, 0.2f, 4) : Tensor());
  tensors.emplace_back();
  if (c.lengths) {
    tensors.back() = Tensor(DType::i32, Shape{c.batch});
    for (int64_t n = 0; n < c.batch; ++n)
      tensors.back().data<int32_t>()[static_cast<size_t>(n)] =
          static_cast<int32_t>((n * 2) % (c.length + 1));
  }
  tensors.push_back(c.states ? values(state, 1, 5) : Tensor());
  const size_t outputs = c.gates == 4 ? 3 : 2;
  if (c.gates == 4) {
    tensors.push_back(c.states ? values(state, 1, 6) : Tensor());
    tensors.push_back(c.peepholes ? values({c.directions, 3 * c.hidden}, 0.2f, 7) : Tensor());
  }
  Graph graph;
  Values in;
  std::vector<Datum> fed;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool weight = i == 1 || i == 2;
    if (!tensors[i]) {
      in.push_back(nullptr);
    } else if (weight && c.constant) {
      in.push_back(graph.add_constant(tensors[i]));
    } else {
      in.push_back(graph.add_input(Type::of(tensors[i]), "in" + std::to_string(i)));
      fed.emplace_back(tensors[i]);
    }
  }
  graph.outputs = graph.add_node(attrs, in, outputs).outs;
  const auto wanted = evaluate(graph, fed);
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (isa > cpu::isa()) continue;
    Session session(Plan::create(graph.clone(), {.threads = 2, .isa = isa}));
    ASSERT_NE(session.plan().steps()[0].row, nullptr);
    for (int again = 0; again < 2; ++again) {
      const auto& got = session.run(fed);
      EXPECT_TRUE(session.refused_steps().empty());
      for (size_t i = 0; i < outputs; ++i)
        for (int64_t k = 0; k < wanted[i].tensor.elements(); ++k)
          ASSERT_NEAR(got[i].tensor.to_double(k), wanted[i].tensor.to_double(k), 2e-6)
              << "output " << i << " element " << k << " " << isa_name(isa);
    }
  }
}

TEST(RnnRows, AgreeWithTheReference) {
  check(RNN{}, {.length = 4, .batch = 3});
  check(RNN{.direction = "reverse"}, {.length = 4, .batch = 5, .hidden = 17, .lengths = true});
  check(RNN{.direction = "bidirectional", .layout = 1},
        {.length = 3, .batch = 2, .directions = 2, .batch_first = true, .bias = false});
}

TEST(GruRows, AgreeWithTheReference) {
  check(GRU{}, {.gates = 3, .length = 5, .batch = 2, .hidden = 20});
  check(GRU{.linear_before_reset = true}, {.gates = 3, .length = 5, .batch = 9, .hidden = 33});
  check(GRU{.direction = "bidirectional"},
        {.gates = 3, .length = 6, .batch = 4, .directions = 2, .lengths = true});
  check(GRU{.direction = "bidirectional", .layout = 1, .linear_before_reset = true},
        {.gates = 3,
         .length = 6,
         .batch = 4,
         .directions = 2,
         .batch_first = true,
         .bias = false,
         .lengths = true,
         .states = false,
         .constant = false});
}

TEST(LstmRows, AgreeWithTheReference) {
  check(LSTM{}, {.gates = 4, .length = 1, .batch = 1, .input = 128, .hidden = 128});
  check(LSTM{.activations = {"sigmoid", "Tanh", "tanh"}},
        {.gates = 4, .length = 7, .batch = 8, .hidden = 9, .states = false});
  check(LSTM{.direction = "bidirectional", .layout = 1}, {.gates = 4,
                                                          .length = 5,
                                                          .batch = 3,
                                                          .directions = 2,
                                                          .batch_first = true,
                                                          .lengths = true,
                                                          .peepholes = true,
                                                          .constant = false});
  check(LSTM{.direction = "reverse", .input_forget = true},
        {.gates = 4, .length = 5, .batch = 3, .bias = false, .peepholes = true});
  // Enough work for shares of the batch on two threads.
  check(LSTM{}, {.gates = 4, .length = 6, .batch = 16, .input = 20, .hidden = 64});
}

TEST(LstmRows, LengthBeyondTheInputIsAnError) {
  Graph graph;
  Value* x = graph.add_input(Type::of(Tensor(DType::f32, Shape{2, 1, 3})), "x");
  Value* lengths = graph.add_input(Type::of(Tensor(DType::i32, Shape{1})), "lengths");
  graph.outputs =
      graph
          .add_node(LSTM{}, {x, graph.add_constant(values({1, 8, 3}, 1, 1)),
                             graph.add_constant(values({1, 8, 2}, 1, 1)), nullptr, lengths})
          .outs;
  Session session(Plan::create(graph.clone(), {.threads = 1, .isa = cpu::isa()}));
  const std::vector<Datum> fed{values({2, 1, 3}, 1, 1), Tensor::of<int32_t>({1}, {3})};
  EXPECT_THROW(session.run(fed), Error);
}

}  // namespace
}  // namespace dais
