// The negative log likelihood and its gradient, triangles, casts of 8-bit floats.
#include "ops/cast/cast.h"
#include "ops/loss/loss.h"
#include "ops/trilu/trilu.h"
#include "watched_row.h"

namespace dais {
namespace {

/// Targets below `classes`, of which some are `ignored`.
template <typename T>
Tensor targets(const Shape& shape, int64_t classes, int64_t ignored) {
  Tensor out = sample<T>(shape, 1000, 7);
  for (T& target : out.data<T>()) {
    const auto index = std::abs(static_cast<int64_t>(target));
    target = static_cast<T>(index % 5 == 0 ? ignored : index % classes);
  }
  return out;
}

template <typename T>
void check_loss(const Shape& x, const Shape& target, const Tensor& weight, DType dtype,
                const RowTolerance& tolerance) {
  const WatchedCase how{.tolerance = tolerance};
  const Tensor values = narrowed(sample<float>(x, 3), dtype);
  const Tensor places = targets<T>(target, x[1], -1);
  const Tensor weights = weight ? narrowed(weight, dtype) : Tensor();
  for (const char* reduction : {"none", "sum", "mean"}) {
    watch_row(NegativeLogLikelihoodLoss{reduction, -1}, {values, places, weights}, how);
    const bool each = std::string(reduction) == "none";
    const Tensor dy = narrowed(sample<float>(each ? target : Shape{}, 2, 5), dtype);
    watch_row(NegativeLogLikelihoodLossBackward{reduction, -1}, {dy, values, places, weights}, how);
  }
}

TEST(LossRows, OfEveryReduction) {
  const Tensor weights = sample<float>({6}, 0.4, 3);
  check_loss<int64_t>({5, 6}, {5}, Tensor(), DType::f32, {1e-5, 1e-5});
  check_loss<int64_t>({3, 6, 4, 2}, {3, 4, 2}, weights, DType::f32, {1e-4, 1e-5});
  check_loss<int32_t>({4000, 6}, {4000}, Tensor(), DType::f32, {1e-5, 1e-5});
  check_loss<int64_t>({5, 6, 3}, {5, 3}, Tensor(), DType::f16, {2e-3, 2e-3});
}

TEST(LossRows, GradientsAreWrittenSideBySide) {
  const Tensor dy = Tensor::scalar(1.0f), x = sample<float>({64, 32}, 3);
  watch_row(NegativeLogLikelihoodLossBackward{}, {dy, x, targets<int64_t>({64}, 32, 0)})
      .expect_coalesced_writes();
}

TEST(LossRows, TargetsThatAreNoClassAreReported) {
  for (const int64_t wrong : {int64_t{3}, int64_t{-1}}) {
    OneNode one;
    one.build(NegativeLogLikelihoodLoss{},
              {sample<float>({2, 3}, 1), Tensor::of<int64_t>({2}, {0, wrong})});
    const Node& node = *one.graph.nodes().front();
    const auto queue = test_backend()->open_queue();
    const KernelQuery query{node, Isa::plain, 1, test_backend().get()};
    const auto kernel = test_backend()->kernels().rows(*node.op)[0]->prepare(query);
    const std::vector<Shape> in{{2, 3}, {2}}, out{{}};
    const auto bound = kernel->bind({in, out});
    std::vector<std::shared_ptr<DeviceMemory>> memory;
    std::vector<const void*> from;
    for (const Datum& input : one.data) {
      memory.push_back(queue->allocate(input.tensor.bytes(), "test"));
      queue->upload(memory.back()->address(), input.tensor.raw(), input.tensor.bytes());
      from.push_back(memory.back()->address());
    }
    for (const size_t bytes : {size_t{4}, bound->scratch_bytes()})
      memory.push_back(queue->allocate(bytes, "test"));
    const std::vector<void*> to{memory[2]->address()};
    queue->run(*bound, {from, to, memory[3]->address(), queue.get()}, 0);
    const auto fault = queue->wait();
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->fault.index, wrong);
  }
}

TEST(TriangleRows, OfEverySideAndDiagonal) {
  for (const bool upper : {false, true})
    for (const int64_t k : {-9, -1, 0, 2, 9}) {
      const WatchedCase how{.tolerance = {0, 0}};
      const Tensor diagonal = Tensor::scalar(k);
      watch_row(Trilu{.upper = upper}, {sample<float>({2, 5, 7}), diagonal}, how);
      watch_row(Trilu{.upper = upper}, {sample<int64_t>({4, 3}), diagonal}, how);
    }
  watch_row(Trilu{}, {sample<bool>({6, 6})}, {.tolerance = {0, 0}});
}

TEST(CastRows, FloatsOfEightBits) {
  // NaN has many forms in the wider types, so that their bits are not compared.
  const WatchedCase exact{.tolerance = {0, 0}}, same{.tolerance = {0, 1e-30}};
  for (const DType code : {DType::f8e4m3fn, DType::f8e5m2}) {
    Tensor codes(code, Shape{256});
    for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(codes.raw())[i] = static_cast<uint8_t>(i);
    for (const DType wide : {DType::f32, DType::f16, DType::bf16}) {
      watch_row(Cast{.to = wide}, {codes}, same);
      const Tensor x = narrowed(sample<float>({3, 400}, 600), wide);
      for (const bool saturate : {true, false})
        watch_row(Cast{.to = code, .saturate = saturate}, {x}, exact);
    }
  }
}

}  // namespace
}  // namespace dais
