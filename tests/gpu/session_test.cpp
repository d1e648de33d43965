// Whole sessions behind the stand-in driver: the same results as on the CPU, nothing leaked, and an
// error that says what happened when a call fails.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include "api/compile.h"
#include "backends/cuda/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "runtime/row_test.h"
#include "stand_in.h"

namespace dais {
namespace {

using cuda::Call;
using cuda::DriverResult;
using cuda::StandIn;

/// relu(x * w + b), then a part with a function of integers that has no row.
std::unique_ptr<Graph> small_network() {
  auto graph = std::make_unique<Graph>();
  graph->name = "small";
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim::symbol("n"), Dim(20)}), "x");
  Value* w = graph->add_constant(sample<float>({20, 70}, 1, 2));
  Value* b = graph->add_constant(sample<float>({70}, 1, 3));
  Value* y = graph->add(Relu{}, {graph->add(Add{}, {graph->add(MatMul{}, {x, w}), b})});
  graph->outputs = {y, graph->add(Sigmoid{}, {graph->add(Mul{}, {y, y})})};
  return graph;
}

CompileOptions on(const std::shared_ptr<Backend>& backend) {
  CompileOptions out;
  out.backend = backend;
  return out;
}

class StandInSession : public testing::Test {
 protected:
  void SetUp() override { StandIn::instance().reset(); }
  void TearDown() override {
    for (const auto& complaint : StandIn::instance().take_complaints()) ADD_FAILURE() << complaint;
    for (const auto& left : StandIn::instance().leftovers()) ADD_FAILURE() << "left: " << left;
  }
  static std::shared_ptr<Backend> open() {
    return std::make_shared<cuda::CudaBackend>(cuda::Device::open(StandIn::instance().tables(), 0));
  }
  static void expect_same(Session& session, int64_t rows) {
    const Tensor x = sample<float>({rows, 20}, 1, static_cast<uint64_t>(rows));
    Session plain(compile(small_network()).plan);
    const std::vector<Datum> inputs{x};
    const auto wanted = plain.run(inputs);
    const auto& got = session.run(inputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_close(got[i].tensor, wanted[i].tensor, {1e-5, 1e-5}, "output " + std::to_string(i));
  }
};

TEST_F(StandInSession, AgreesWithTheCpuAsSizesChange) {
  Session session(compile(small_network(), on(open())).plan);
  EXPECT_TRUE(session.plan().warnings().empty());
  for (const int64_t rows : {3, 3, 3, 3, 90, 90, 1, 0, 3}) expect_same(session, rows);
}

/// The sizes of a scalar are a constant without elements, and here the device's only one.
TEST_F(StandInSession, ConstantsMayBeEmpty) {
  const auto network = [] {
    auto graph = std::make_unique<Graph>();
    Value* a = graph->add_input(Type::tensor(DType::f32, Dims{Dim(1), Dim(5)}), "a");
    Value* b = graph->add_input(Type::tensor(DType::f32, Dims{Dim(5), Dim(1)}), "b");
    Value* none = graph->add_constant(Tensor(DType::i64, {0}));
    graph->outputs = {graph->add(Reshape{}, {graph->add(MatMul{}, {a, b}), none})};
    return graph;
  };
  const std::vector<Datum> inputs{sample<float>({1, 5}, 1), sample<float>({5, 1}, 1, 2)};
  Session plain(compile(network()).plan), session(compile(network(), on(open())).plan);
  const Tensor wanted = plain.run(inputs)[0].tensor.clone();
  expect_close(session.run(inputs)[0].tensor, wanted, {1e-5, 1e-5}, "scalar");
}

TEST_F(StandInSession, SessionsShareAPlan) {
  const auto plan = compile(small_network(), on(open())).plan;
  Session first(plan), second(plan);
  expect_same(first, 4);
  expect_same(second, 5);
  expect_same(first, 4);
}

/// Runs with the n-th allocation refused `times` times in a row, for every n; then once more on the
/// same device. Gives how many runs failed.
int refuse_each_allocation(int times, std::shared_ptr<Backend> (*open)(),
                           void (*use)(const std::shared_ptr<Backend>&)) {
  int failed = 0;
  for (int n = 0;; ++n) {
    StandIn::instance().reset();
    {
      const std::shared_ptr<Backend> backend = open();
      StandIn::instance().fail(Call::allocate, n, DriverResult::out_of_memory, false, times);
      try {
        use(backend);
      } catch (const Error& error) {
        ++failed;
        EXPECT_EQ(error.code(), Code::exhausted) << error.what();
      }
      const bool beyond = StandIn::instance().calls(Call::allocate) <= n;
      StandIn::instance().fail(Call::allocate, -1, DriverResult::success);
      use(backend);
      if (beyond) return failed;
    }
    for (const auto& left : StandIn::instance().leftovers()) ADD_FAILURE() << "left: " << left;
  }
}

TEST_F(StandInSession, EveryAllocationMayFail) {
  const auto use = [](const std::shared_ptr<Backend>& backend) {
    Session session(compile(small_network(), on(backend)).plan);
    expect_same(session, 4);
  };
  // A first refusal is met by giving back what the pool keeps; a second one stops the call.
  EXPECT_EQ(refuse_each_allocation(1, open, use), 0);
  EXPECT_GE(refuse_each_allocation(2, open, use), 2);
}

TEST_F(StandInSession, FullMemoryNamesItsHolders) {
  const std::shared_ptr<Backend> backend = open();
  Session session(compile(small_network(), on(backend)).plan);
  expect_same(session, 4);
  StandIn::instance().fail(Call::allocate, 0, DriverResult::out_of_memory, false, 2);
  try {
    expect_same(session, 4000);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::exhausted);
    EXPECT_NE(error.problem().find("activations of small"), std::string::npos) << error.what();
    EXPECT_NE(error.remedy().find("weights of fused"), std::string::npos) << error.what();
  }
}

TEST_F(StandInSession, FullMemoryNamesTheBatchThatFits) {
  Session session(compile(small_network(), on(open())).plan);
  expect_same(session, 4);
  StandIn::instance().limit_memory(size_t{1} << 20);
  int64_t fits = 0;
  try {
    expect_same(session, 40000);
    FAIL() << "no error";
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), Code::exhausted);
    ASSERT_EQ(std::sscanf(error.remedy().c_str(), "'n' = %ld would fit instead of 40000", &fits), 1)
        << error.remedy();
  }
  EXPECT_GT(fits, 100);
  expect_same(session, fits);
}

TEST_F(StandInSession, FailedLaunchIsReported) {
  Session session(compile(small_network(), on(open())).plan);
  expect_same(session, 4);
  StandIn::instance().fail(Call::launch, 0, DriverResult::launch_out_of_resources);
  EXPECT_THROW(expect_same(session, 7), Error);
  expect_same(session, 8);
}

TEST_F(StandInSession, LostDeviceIsReportedAsSuch) {
  {
    Session session(compile(small_network(), on(open())).plan);
    expect_same(session, 4);
    StandIn::instance().fail(Call::launch, 0, DriverResult::illegal_address, true);
    for (int i = 0; i < 2; ++i) try {
        expect_same(session, 7 + i);
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable) << error.what();
        EXPECT_NE(error.what(), std::string()) << error.what();
      }
  }
}

/// Copies of several pieces: page-locked memory must not be filled again while it is read.
TEST_F(StandInSession, LargeTensorsGoPieceByPiece) {
  const auto queue = open()->open_queue();
  const int64_t count = (int64_t{11} << 20) / 4 + 3;
  const Tensor given = sample<float>({count});
  Tensor got(DType::f32, {count});
  const auto memory = queue->allocate(given.bytes(), "large");
  queue->upload(memory->address(), given.raw(), given.bytes());
  queue->download(got.raw(), memory->address(), got.bytes());
  queue->wait();
  EXPECT_TRUE(got.identical(given));
}

/// What the next run reads goes to the device beside the present one, and each tensor counts once.
TEST_F(StandInSession, InputsMayComeAhead) {
  Session session(compile(small_network(), on(open())).plan);
  Session plain(compile(small_network()).plan);
  std::vector<Tensor> batches;
  for (uint64_t i = 0; i < 8; ++i) batches.push_back(sample<float>({30, 20}, 1, i));
  for (size_t i = 0; i < batches.size(); ++i) {
    // The fifth run has room for nothing more, and the sixth gets another tensor than was
    // announced.
    if (i == 4) StandIn::instance().fail(Call::allocate, 0, DriverResult::out_of_memory, false, 2);
    const Tensor next = i == 4 ? sample<float>({40, 20}) : batches[(i + 1) % batches.size()];
    session.prefetch(std::vector<Datum>{next});
    const auto& got = session.run(std::vector<Datum>{batches[i]});
    const auto& wanted = plain.run(std::vector<Datum>{batches[i]});
    for (size_t out = 0; out < wanted.size(); ++out)
      expect_close(got[out].tensor, wanted[out].tensor, {1e-5, 1e-5}, "run " + std::to_string(i));
  }
}

TEST_F(StandInSession, CopiesAheadThatFailAreReportedByTheRunThatNeedsThem) {
  Session session(compile(small_network(), on(open())).plan);
  const Tensor first = sample<float>({30, 20}), second = sample<float>({30, 20}, 1, 2);
  session.run(std::vector<Datum>{first});
  StandIn::instance().fail(Call::copy, 0, DriverResult::launch_failed);
  session.prefetch(std::vector<Datum>{second});
  EXPECT_THROW(session.run(std::vector<Datum>{second}), Error);
  expect_same(session, 30);
}

TEST_F(StandInSession, StatesStayOnTheDevice) {
  auto graph = std::make_unique<Graph>();
  Value* held = graph->add_input(Type::tensor(DType::f32, Dims{Dim(5)}), "held");
  Value* step = graph->add_input(Type::tensor(DType::f32, Dims{Dim(5)}), "step");
  graph->outputs = {graph->add(Add{}, {held, step}), graph->add(Mul{}, {held, step})};
  CompileOptions options = on(open());
  options.states = {{0, 0}};
  Session session(compile(std::move(graph), options).plan);
  Tensor memory = Tensor::of<float>({5}, {{1, 2, 3, 4, 5}});
  session.bind_state(0, memory);
  const int before = StandIn::instance().calls(Call::copy);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Datum> inputs{Datum(), Tensor::of<float>({5}, {{1, 1, 1, 1, 2}})};
    const auto& results = session.run(inputs);
    EXPECT_FALSE(results[0].has_value());
    EXPECT_EQ(results[1].tensor.to_double(0), 1 + i);
  }
  // The step comes and the product goes; the state does neither.
  EXPECT_EQ(StandIn::instance().calls(Call::copy) - before, 6);
  const Tensor now = session.state(0);
  EXPECT_EQ(now.raw(), memory.raw());
  EXPECT_EQ(now.to_double(0), 4);
  EXPECT_EQ(now.to_double(4), 11);
}

}  // namespace
}  // namespace dais
