// Every hand-written kernel through its row on the emulated device: the same results as the CPU's
// reference, nothing for the checks to find, and accesses as coalesced as the algorithm allows.
#include <bit>

#include "ir/float_formats.h"
#include "ops/attention/attention.h"
#include "ops/gather/gather.h"
#include "ops/lrn/lrn.h"
#include "ops/norm/norm.h"
#include "ops/optimizer/optimizer.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/resize/resize.h"
#include "ops/softmax/softmax.h"
#include "ops/topk/topk.h"
#include "ops/transpose/transpose.h"
#include "watched_row.h"

namespace dais {
namespace {

Tensor floats(const Shape& shape, uint64_t seed = 1) { return sample<float>(shape, 4, seed); }
Tensor halves(const Shape& shape, uint64_t seed = 1) {
  return narrowed(floats(shape, seed), DType::f16);
}

// Twice the distance of neighbours of the type, where sums are rounded once at the end.
const RowTolerance kHalf{2e-3, 2e-3}, kBrain{1.6e-2, 1.6e-2};

TEST(FamilyRows, ReduceRows) {
  const WatchedRun run = watch_row(ReduceSum{.keepdims = false},
                                   {floats({6, 1024}), Tensor::ints(std::vector<int64_t>{1})},
                                   {.tolerance = {1e-5, 1e-4}, .constants = {1}});
  run.expect_coalesced();
  run.expect_bytes(6 * 1024 * 4, 6 * 4);
  run.expect_no_bank_conflicts();
}

TEST(FamilyRows, ReduceLongRowsInPieces) {
  const WatchedRun run = watch_row(ReduceMean{}, {floats({1, 40000})}, {.tolerance = {1e-5, 1e-5}});
  run.expect_launches(2);
  run.expect_coalesced();
}

TEST(FamilyRows, ReduceColumns) {
  const Tensor axes = Tensor::ints(std::vector<int64_t>{1});
  const WatchedRun run = watch_row(ReduceMax{}, {floats({3, 7, 64}), axes}, {.constants = {1}});
  run.expect_coalesced();
  watch_row(ReduceMean{}, {halves({3, 7, 5}), axes}, {.tolerance = kHalf, .constants = {1}});
}

TEST(FamilyRows, ReduceOddRowsOfEachKind) {
  const WatchedCase how{.tolerance = {1e-4, 1e-4}};
  const Tensor x = sample<float>({37}, 1.5, 5);
  watch_row(ReduceSum{}, {x}, how);
  watch_row(ReduceMin{}, {x}, how);
  watch_row(ReduceMax{}, {x}, how);
  watch_row(ReduceProd{}, {x}, how);
  watch_row(ReduceL1{}, {x}, how);
  watch_row(ReduceL2{}, {x}, how);
  watch_row(ReduceSumSquare{}, {x}, how);
}

TEST(FamilyRows, NanWinsInMaximum) {
  watch_row(ReduceMax{}, {Tensor::of<float>({3}, {1, NAN, 2})});
  watch_row(ReduceMin{}, {Tensor::of<float>({3}, {NAN, 1, 2})});
}

/// Few values, so that there are equal ones; rows, columns and axes between.
TEST(FamilyRows, PlacesOfExtremes) {
  for (const Shape& shape : {Shape{7, 300}, Shape{1, 5}, Shape{3, 40, 6}, Shape{2000}})
    for (size_t axis = 0; axis < shape.rank(); ++axis)
      for (const bool last : {false, true}) {
        const auto at = static_cast<int64_t>(axis);
        const Tensor whole = sample<int32_t>(shape, 9);
        Tensor x(DType::f32, shape);
        for (int64_t i = 0; i < x.elements(); ++i)
          x.data<float>()[static_cast<size_t>(i)] = static_cast<float>(whole.to_double(i)) / 2;
        watch_row(ArgMax{.axis = at, .keepdims = false, .select_last_index = last}, {x});
        watch_row(ArgMin{.axis = at, .select_last_index = last}, {narrowed(x, DType::f16)});
        watch_row(ArgMax{.axis = at, .select_last_index = last}, {whole});
      }
  watch_row(ArgMax{.axis = 1}, {sample<float>({8, 1024}, 3)}).expect_coalesced();
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const Tensor ends = Tensor::of<int32_t>({4}, {kMost, kLeast, kMost, kLeast});
  watch_row(ArgMax{.axis = 0, .select_last_index = true}, {ends});
  watch_row(ArgMin{.axis = 0, .select_last_index = true}, {ends});
}

TEST(FamilyRows, TheFirstNanIsTheExtreme) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), least = -INFINITY;
  const Tensor x = Tensor::of<float>({2, 4}, {3, nan, 9, nan, least, least, least, least});
  for (const bool last : {false, true}) {
    watch_row(ArgMax{.axis = 1, .select_last_index = last}, {x});
    watch_row(ArgMin{.axis = 1, .select_last_index = last}, {x});
    watch_row(ArgMin{.axis = 0, .select_last_index = last}, {x});
  }
}

TEST(FamilyRows, Softmax) {
  const WatchedRun run = watch_row(Softmax{.axis = -1}, {floats({3, 512})});
  run.expect_bytes(3 * 512 * 4, 3 * 512 * 4);
  run.expect_coalesced();
  watch_row(Softmax{.axis = -1}, {floats({2, 5000})});
  watch_row(Softmax{.axis = -1}, {floats({4, 7})});
  watch_row(Softmax{.axis = 1}, {floats({2, 9, 64})}).expect_coalesced();
  watch_row(LogSoftmax{.axis = -1}, {floats({2, 33})});
  watch_row(LogSoftmax{.axis = 0}, {floats({9, 33})});
  watch_row(Softmax{.axis = -1}, {halves({2, 40})}, {.tolerance = kHalf});
  watch_row(Softmax{.axis = -1}, {narrowed(floats({2, 40}), DType::bf16)}, {.tolerance = kBrain});
}

TEST(FamilyRows, SoftmaxOfMinusInfinities) {
  const float never = -INFINITY;
  watch_row(Softmax{.axis = -1}, {Tensor::of<float>({2, 2}, {never, never, never, 1})});
}

TEST(FamilyRows, LayerNorm) {
  const WatchedRun run = watch_row(LayerNormalization{.axis = -1},
                                   {floats({5, 256}), floats({256}, 2), floats({256}, 3)},
                                   {.tolerance = {1e-5, 1e-5}, .outputs = 3});
  // x, scale and bias once each; y and two statistics of each row.
  run.expect_bytes(5 * 256 * 4 * 3, 5 * 256 * 4 + 5 * 8);
  watch_row(LayerNormalization{.axis = 1}, {floats({2, 3, 11}), floats({3, 11}, 2)},
            {.tolerance = {1e-5, 1e-5}});
  watch_row(LayerNormalization{.axis = -1}, {halves({2, 100}), halves({100}, 2), halves({100}, 3)},
            {.tolerance = {4e-3, 8e-3}});
  watch_row(RMSNormalization{.axis = -1}, {floats({3, 4500}), floats({4500}, 2)},
            {.tolerance = {1e-5, 1e-5}});
}

TEST(FamilyRows, GroupInstanceAndBatchNorm) {
  const WatchedCase how{.tolerance = {1e-5, 1e-5}};
  watch_row(GroupNormalization{.num_groups = 2},
            {floats({2, 6, 3, 5}), floats({6}, 2), floats({6}, 3)}, how);
  watch_row(InstanceNormalization{}, {floats({2, 3, 40}), floats({3}, 2), floats({3}, 3)}, how);
  const Tensor variance = Tensor::of<float>({3}, {0.5f, 1, 2});
  watch_row(BatchNormalization{},
            {floats({2, 3, 4, 8}), floats({3}, 2), floats({3}, 3), floats({3}, 4), variance}, how);
  watch_row(BatchNormalization{.channels_last = true},
            {floats({2, 4, 3}), floats({3}, 2), floats({3}, 3), floats({3}, 4), variance}, how);
}

TEST(FamilyRows, BatchNormInTraining) {
  const Tensor scale = floats({3}, 2), bias = floats({3}, 3), mean = floats({3}, 4);
  const Tensor variance = Tensor::of<float>({3}, {0.5f, 1, 2});
  const WatchedCase how{.tolerance = {1e-5, 1e-5}, .outputs = 5};
  watch_row(BatchNormalization{.training_mode = true},
            {floats({4, 3, 5, 7}), scale, bias, mean, variance}, how)
      .expect_launches(2);
  watch_row(BatchNormalization{.training_mode = true, .channels_last = true},
            {floats({4, 6, 3}), scale, bias, mean, variance}, how);
  watch_row(BatchNormalizationBackward{},
            {floats({4, 3, 5, 7}), floats({4, 3, 5, 7}, 2), scale, mean, variance},
            {.tolerance = {1e-4, 1e-4}, .outputs = 3});
}

TEST(FamilyRows, MaxPoolHandsItsGradientBack) {
  Tensor x = floats({2, 3, 7, 9});
  for (float& value : x.data<float>()) value = std::floor(value);  // equal elements in windows
  const MaxPool pool{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}, .strides = {2, 2}};
  const Tensor y = run_reference(pool, {x});
  watch_row(
      MaxPoolBackward{
          .kernel_shape = pool.kernel_shape, .pads = pool.pads, .strides = pool.strides},
      {floats(y.shape(), 2), x, y});
  const MaxPool last{.kernel_shape = {2, 2}, .channels_last = true};
  const Tensor z = run_reference(last, {x});
  watch_row(MaxPoolBackward{.kernel_shape = {2, 2}, .channels_last = true},
            {floats(z.shape(), 2), x, z});
}

TEST(FamilyRows, AveragePoolHandsItsGradientBack) {
  const Tensor sizes = Tensor::ints(std::vector<int64_t>{2, 3, 7, 9});
  const WatchedCase how{.constants = {1}};
  for (const bool pad : {false, true})
    watch_row(AveragePoolBackward{.count_include_pad = pad,
                                  .kernel_shape = {3, 2},
                                  .pads = {1, 1, 1, 0},
                                  .strides = {2, 2}},
              {floats({2, 3, 4, 5}), sizes}, how);
  watch_row(AveragePoolBackward{.kernel_shape = {2, 2}, .sum = true}, {floats({2, 3, 6, 8}), sizes},
            how);
}

TEST(FamilyRows, EmbeddingGradientsAddUpInOrder) {
  const Tensor sizes = Tensor::ints(std::vector<int64_t>{7, 40});
  const Tensor rows = Tensor::of<int64_t>({2, 3}, {4, 0, -3, 2, 4, -7});
  watch_row(GatherBackward{.axis = 0}, {floats({2, 3, 40}), rows, sizes}, {.constants = {2}})
      .expect_coalesced_writes();
  watch_row(GatherBackward{.axis = 1},
            {halves({7, 2, 3}), rows, Tensor::ints(std::vector<int64_t>{7, 9})},
            {.tolerance = kHalf, .constants = {2}});
}

TEST(FamilyRows, Scans) {
  const WatchedCase how{.tolerance = {1e-5, 1e-4}, .constants = {1}};
  const Tensor last = Tensor::scalar<int64_t>(-1), first = Tensor::scalar<int64_t>(0);
  watch_row(CumSum{}, {floats({2, 2048}), last}, {{1e-4, 1e-3}, {1}}).expect_coalesced();
  watch_row(CumSum{.exclusive = true}, {floats({2, 1100}), last}, {{1e-4, 1e-3}, {1}});
  watch_row(CumSum{.exclusive = true, .reverse = true}, {floats({3, 70}), last}, how);
  watch_row(CumSum{.reverse = true}, {floats({9, 40}), first}, how);
  watch_row(CumProd{.exclusive = true}, {sample<float>({2, 20}, 1.5), last}, how);
}

TEST(FamilyRows, TransposesAreCoalescedOnBothSides) {
  const WatchedRun run = watch_row(Transpose{.perm = {0, 2, 1}}, {floats({2, 64, 96})});
  run.expect_coalesced();
  run.expect_no_bank_conflicts();
  watch_row(Transpose{}, {floats({33, 70})});
  watch_row(Transpose{.perm = {2, 0, 1, 3}}, {floats({3, 4, 5, 6})});
  watch_row(Transpose{.perm = {3, 1, 2, 0}}, {sample<int64_t>({3, 4, 5, 2}, 100)});
  watch_row(Transpose{.perm = {1, 0}}, {sample<uint8_t>({40, 50}, 200)});
  watch_row(Transpose{.perm = {1, 0}}, {sample<double>({3, 4}, 2)});
  watch_row(Transpose{.perm = {0, 1}}, {halves({4, 8})});
}

TEST(FamilyRows, GatherIsEmbedding) {
  const Tensor rows = Tensor::of<int64_t>({2, 3}, {4, 0, -1, 2, 2, 9});
  const WatchedRun run = watch_row(Gather{.axis = 0}, {floats({10, 64}), rows});
  run.expect_coalesced_writes();
  watch_row(Gather{.axis = 1}, {floats({3, 10, 5}), rows});
  watch_row(Gather{.axis = -1}, {halves({3, 10}), Tensor::of<int32_t>({2}, {1, -10})});
  watch_row(GatherElements{.axis = 1},
            {floats({2, 5}), Tensor::of<int64_t>({2, 3}, {4, 0, -1, 2, 2, 1})});
}

TEST(FamilyRows, IndicesOutsideAreReported) {
  Graph graph;
  const Tensor data = floats({10, 4}), indices = Tensor::of<int64_t>({3}, {1, 10, 2});
  graph.add_node(Gather{.axis = 0},
                 {graph.add_input(Type::of(data), {}), graph.add_input(Type::of(indices), {})}, 1);
  const Node& node = *graph.nodes().front();
  const KernelQuery query{node, Isa::plain, 1, test_backend().get()};
  const KernelRow* row = test_backend()->kernels().rows(Gather::op).front();
  const auto queue = test_backend()->open_queue();
  const std::vector<Shape> in{data.shape(), indices.shape()}, out{Shape{3, 4}};
  const auto bound = row->prepare(query)->bind({in, out});
  const auto x = queue->allocate(data.bytes(), "test"), at = queue->allocate(24, "test"),
             y = queue->allocate(48, "test");
  queue->upload(x->address(), data.raw(), data.bytes());
  queue->upload(at->address(), indices.raw(), indices.bytes());
  const std::vector<const void*> inputs{x->address(), at->address()};
  const std::vector<void*> outputs{y->address()};
  queue->run(*bound, {inputs, outputs, nullptr, queue.get()}, 5);
  const auto fault = queue->wait();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->fault.index, 10);
  EXPECT_EQ(fault->step, 5);
}

TEST(FamilyRows, ScansAlongAnAxisThatTheDeviceKnows) {
  for (const int64_t axis : {0, 1, -1}) {
    const Tensor along = Tensor::scalar(axis);
    watch_row(CumSum{.exclusive = true}, {floats({3, 5, 4}), along}, {.tolerance = {1e-5, 1e-5}});
    watch_row(CumProd{.reverse = true}, {floats({3, 5, 4}), along}, {.tolerance = {1e-5, 1e-5}});
  }
}

TEST(FamilyRows, NeighboursInOtherChannels) {
  for (const bool last : {false, true})
    for (const int64_t size : {1, 4, 5, 40}) {
      const LRN attrs{
          .alpha = 0.02F, .beta = 0.6F, .bias = 1.5F, .size = size, .channels_last = last};
      watch_row(attrs, {floats({2, 6, 5, 32})}).expect_coalesced_writes();
      watch_row(attrs, {halves({2, 6, 5})}, {.tolerance = kHalf});
    }
}

TEST(FamilyRows, Pools) {
  const WatchedCase indices{.outputs = 2};
  watch_row(MaxPool{.kernel_shape = {2, 2}, .strides = {2, 2}}, {floats({1, 2, 8, 8})});
  watch_row(MaxPool{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}, .strides = {2, 2}},
            {floats({2, 3, 7, 9})}, indices);
  watch_row(MaxPool{.dilations = {2}, .kernel_shape = {3}}, {halves({2, 3, 11})});
  watch_row(MaxPool{.kernel_shape = {2, 2}, .channels_last = true}, {floats({2, 5, 6, 32})});
  watch_row(AveragePool{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}}, {floats({2, 3, 7, 9})});
  watch_row(AveragePool{.ceil_mode = true,
                        .count_include_pad = true,
                        .kernel_shape = {3, 2},
                        .pads = {1, 0, 1, 1},
                        .strides = {2, 2}},
            {floats({1, 2, 8, 7})});
  watch_row(AveragePool{.auto_pad = "SAME_UPPER", .kernel_shape = {2, 2, 2}},
            {floats({1, 2, 3, 4, 5})});
  for (const int64_t p : {1, 2, 3}) {
    watch_row(LpPool{.kernel_shape = {3, 2}, .pads = {1, 0, 1, 1}, .strides = {2, 1}, .p = p},
              {floats({2, 3, 7, 9})});
    watch_row(LpPool{.kernel_shape = {3}, .p = p, .channels_last = true}, {halves({2, 9, 3})},
              {.tolerance = kHalf});
  }
}

TEST(FamilyRows, TopKKeepsTheOrderOfEquals) {
  const Tensor three = Tensor::ints(std::vector<int64_t>{3});
  const WatchedCase how{.tolerance = {0, 0}, .constants = {1}, .outputs = 2};
  watch_row(TopK{}, {Tensor::of<float>({1, 6}, {2, 5, 5, NAN, -0.0f, 0}), three}, how);
  watch_row(TopK{.largest = false},
            {Tensor::of<float>({1, 6}, {2, 5, NAN, -INFINITY, 2, 2}), three}, how);
  watch_row(TopK{.axis = 1}, {floats({2, 300, 3}), three}, how);
  watch_row(TopK{}, {halves({2, 40}), three}, how);
}

TEST(FamilyRows, RandomNumbersHaveTheBitsOfTheCpu) {
  const WatchedCase exact{.tolerance = {0, 0}};
  watch_row(RandomUniform{.low = -2, .high = 3, .seed = 7.0f, .shape = {100}}, {}, exact);
  watch_row(RandomNormal{.mean = 1, .scale = 2, .seed = 7.0f, .shape = {100}}, {}, exact);
  watch_row(SteppedDropout{.ratio = 0.3f, .seed = 5, .stream = 3},
            {floats({103}), Tensor::scalar<int64_t>(12)}, exact);
}

TEST(FamilyRows, Quantisation) {
  const WatchedCase exact{.tolerance = {0, 0}};
  const Tensor scale = Tensor::scalar(0.03f), zero = Tensor::scalar<int8_t>(-3);
  const WatchedRun run = watch_row(QuantizeLinear{}, {floats({4, 64}), scale, zero}, exact);
  run.expect_coalesced_writes();
  const Tensor scales = Tensor::of<float>({3}, {0.1f, 0.5f, 0.01f});
  const Tensor zeros = Tensor::of<uint8_t>({3}, {128, 0, 9});
  watch_row(QuantizeLinear{.axis = 1}, {floats({2, 3, 5}), scales, zeros}, exact);
  watch_row(DequantizeLinear{.axis = 1}, {sample<uint8_t>({2, 3, 5}, 255), scales, zeros}, exact);
  watch_row(QuantizeLinear{.axis = 1, .block_size = 2, .output_dtype = DType::i4},
            {floats({3, 4, 2}), sample<float>({3, 2, 2}, 1)}, exact);
  watch_row(QuantizeLinear{.output_dtype = DType::i8}, {halves({50}), narrowed(scale, DType::f16)},
            exact);
}

/// Every code widened, and numbers around every code and beyond all narrowed.
TEST(FamilyRows, FloatsOfEightBits) {
  const WatchedCase exact{.tolerance = {0, 0}};
  for (const DType dtype : {DType::f8e4m3fn, DType::f8e5m2}) {
    Tensor codes(dtype, Shape{256});
    for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(codes.raw())[i] = static_cast<uint8_t>(i);
    const Tensor one = Tensor::scalar(1.0f);
    watch_row(DequantizeLinear{}, {codes, one}, {.tolerance = {0, 1e-30}});
    std::vector<float> numbers{1e9f, -1e9f, INFINITY, -INFINITY, 1e-9f, -1e-9f, 5e-40f};
    for (int i = 0; i < 256; ++i) {
      const auto bits = static_cast<uint8_t>(i);
      const float number = dtype == DType::f8e5m2
                               ? static_cast<float>(std::bit_cast<Float8E5M2>(bits))
                               : static_cast<float>(std::bit_cast<Float8E4M3FN>(bits));
      if (!std::isfinite(number)) continue;
      for (const float part : {1.0f, 1.0625f, 1.125f, 0.9375f, 1.03f})
        numbers.push_back(number * part);
      numbers.push_back(std::nextafter(number * 1.0625f, 0.0f));
    }
    Tensor x(DType::f32, Shape{static_cast<int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), x.data<float>().begin());
    for (const bool saturate : {true, false})
      watch_row(QuantizeLinear{.saturate = saturate, .output_dtype = dtype}, {x, one}, exact);
    const Tensor scales = Tensor::of<float>({3}, {0.1f, 0.5f, 0.01f});
    watch_row(QuantizeLinear{.axis = 1, .output_dtype = dtype}, {floats({2, 3, 5}), scales}, exact);
  }
}

TEST(FamilyRows, OptimisersReadAndWriteEachStateOnce) {
  const Tensor rate = Tensor::scalar(0.1f), done = Tensor::scalar<int64_t>(3);
  const Tensor positive = sample<float>({256}, 0.5, 9);
  Tensor squares = positive.clone();
  for (float& value : squares.data<float>()) value = value * value;
  const std::vector<Tensor> adam = {rate, done, floats({256}), floats({256}, 2), positive, squares};
  const WatchedRun run = watch_row(Adam{.epsilon = 1e-6f, .norm_coefficient = 0.01f}, adam,
                                   {.tolerance = {1e-5, 1e-6}, .outputs = 3});
  run.expect_coalesced();
  // Four states read and three written; each thread reads the rate and the count.
  run.expect_bytes(4 * 256 * 4 + 64 * 12, 3 * 256 * 4);
  watch_row(Momentum{.mode = "nesterov"},
            {rate, done, floats({7}), floats({5}), floats({7}, 2), floats({5}, 2), floats({7}, 3),
             floats({5}, 3)},
            {.outputs = 4});
  watch_row(Adagrad{.decay_factor = 0.1f, .epsilon = 1e-5f},
            {rate, done, floats({256}), floats({256}, 2), squares}, {.outputs = 2});
}

TEST(FamilyRows, Resizing) {
  const Tensor none(DType::f32, Shape{0});
  const Tensor twice = Tensor::of<float>({4}, {1, 1, 2, 2}),
               part = Tensor::of<float>({2}, {0.6f, 1.7f});
  const Tensor sizes = Tensor::ints(std::vector<int64_t>{5, 9});
  const WatchedCase how{.constants = {1, 2, 3}};
  watch_row(Resize{}, {floats({1, 2, 4, 5}), none, twice}, {.constants = {1, 2}});
  watch_row(Resize{.mode = "linear"}, {floats({1, 2, 4, 5}), none, twice}, {.constants = {1, 2}});
  watch_row(Resize{.mode = "linear", .axes = {2, 3}}, {floats({1, 2, 6, 6}), none, none, sizes},
            how);
  watch_row(Resize{.mode = "cubic", .axes = {-2, -1}}, {floats({1, 2, 8, 6}), none, part},
            {.tolerance = {1e-4, 1e-4}, .constants = {1, 2}});
  watch_row(Resize{.mode = "linear", .antialias = true, .axes = {2, 3}},
            {floats({1, 1, 16, 16}), none, none, sizes}, how);
}

struct AttentionCase {
  Attention attrs;
  Shape q, kv;
  Tensor mask = {};
};

void check_attention(const AttentionCase& c, DType dtype, const RowTolerance& tolerance,
                     const std::string& row) {
  const Tensor q = sample<float>(c.q, 1, 1), k = sample<float>(c.kv, 1, 2),
               v = sample<float>(c.kv, 1, 3);
  const Tensor mask = c.mask && c.mask.dtype() == DType::f32 ? narrowed(c.mask, dtype) : c.mask;
  const WatchedRun run =
      watch_row(c.attrs, {narrowed(q, dtype), narrowed(k, dtype), narrowed(v, dtype), mask},
                {.tolerance = tolerance});
  EXPECT_EQ(run.row, row);
}

TEST(FamilyRows, AttentionByRows) {
  const RowTolerance tolerance{1e-4, 1e-5};
  check_attention({{}, {1, 2, 9, 40}, {1, 2, 37, 40}}, DType::f32, tolerance, "attention/cuda");
  check_attention({{.is_causal = true}, {2, 4, 20, 16}, {2, 2, 20, 16}}, DType::f32, tolerance,
                  "attention/cuda");
  check_attention(
      {{.kv_num_heads = 2, .q_num_heads = 2, .scale = 0.5f, .softcap = 2}, {2, 5, 32}, {2, 7, 32}},
      DType::f32, tolerance, "attention/cuda");
}

TEST(FamilyRows, AttentionWithMasks) {
  Tensor seen = sample<bool>({1, 1, 6, 10}, 1, 4);
  for (size_t i = 20; i < 30; ++i) seen.data<bool>()[i] = false;
  const RowTolerance tolerance{1e-4, 1e-5};
  check_attention({{}, {2, 2, 6, 16}, {2, 2, 10, 16}, seen}, DType::f32, tolerance,
                  "attention/cuda");
  check_attention({{}, {2, 2, 6, 16}, {2, 2, 10, 16}, floats({2, 1, 6, 8}, 5)}, DType::f32,
                  tolerance, "attention/cuda");
  check_attention({{}, {1, 2, 6, 16}, {1, 2, 10, 16}, seen}, DType::f16, {4e-3, 4e-3},
                  "attention/cuda tiles");
}

TEST(FamilyRows, AttentionByTiles) {
  check_attention({{}, {1, 2, 70, 32}, {1, 1, 130, 32}}, DType::f16, {4e-3, 4e-3},
                  "attention/cuda tiles");
  check_attention({{.is_causal = true}, {1, 1, 80, 64}, {1, 1, 80, 64}}, DType::bf16, {2e-2, 2e-2},
                  "attention/cuda tiles");
}

}  // namespace
}  // namespace dais
