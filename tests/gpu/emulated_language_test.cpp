// The language of kernels on the emulated device: what CUDA defines, bit for bit.
#include <cmath>
#include <cstring>
#include <numeric>

#include "emulated_device.h"
#include "ir/float_formats.h"

namespace dais::cuda {
namespace {

/// Runs `body` on one block with `out` of a word for each thread.
std::vector<int> words_of(const std::string& body, unsigned threads = 32) {
  EmulatedDevice device;
  const DriverModule module = device.compile(
      "extern \"C\" __global__ void k(int* out) {\n const int i = threadIdx.x;\n" + body + "\n}");
  EXPECT_NE(module, nullptr) << device.log;
  int* out = device.make<int>(threads);
  EXPECT_EQ(device.launch(module, "k", {.block = {threads, 1, 1}}, out), DriverResult::success)
      << emulated::describe_findings();
  return device.download(out, threads);
}

TEST(EmulatedLanguage, ShufflesReadOtherLanes) {
  const auto down = words_of("out[i] = __shfl_down_sync(~0u, i, 3);");
  const auto up = words_of("out[i] = __shfl_up_sync(~0u, i, 3);");
  const auto turned = words_of("out[i] = __shfl_xor_sync(~0u, i, 5);");
  const auto parts = words_of("out[i] = __shfl_sync(~0u, i, 1, 8);");
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(down[at], i + 3 < 32 ? i + 3 : i);
    EXPECT_EQ(up[at], i >= 3 ? i - 3 : i);
    EXPECT_EQ(turned[at], i ^ 5);
    EXPECT_EQ(parts[at], i / 8 * 8 + 1);
  }
}

TEST(EmulatedLanguage, VotesAndReductionsOfAWarp) {
  for (const int word : words_of("out[i] = __ballot_sync(~0u, i % 3 == 0);"))
    EXPECT_EQ(static_cast<unsigned>(word), 0x49249249u);
  EXPECT_EQ(words_of("out[i] = __any_sync(~0u, i == 7);")[0], 1);
  EXPECT_EQ(words_of("out[i] = __all_sync(~0u, i != 7);")[0], 0);
  EXPECT_EQ(words_of("out[i] = __reduce_add_sync(~0u, i);")[5], 496);
  EXPECT_EQ(words_of("out[i] = __reduce_max_sync(~0u, i - 40);")[5], -9);
  EXPECT_EQ(words_of("out[i] = __match_any_sync(~0u, i / 16);")[20], static_cast<int>(0xffff0000u));
}

TEST(EmulatedLanguage, PartsOfAWarpGoTheirOwnWays) {
  const auto words = words_of(
      "if (i % 2) out[i] = __shfl_xor_sync(0xaaaaaaaau, i, 2);\n"
      "else out[i] = -__shfl_xor_sync(0x55555555u, i, 4);");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(words[static_cast<size_t>(i)], i % 2 ? i ^ 2 : -(i ^ 4));
}

TEST(EmulatedLanguage, ASmallLastWarpTakesPartAsItIs) {
  const auto words = words_of("out[i] = __reduce_add_sync(~0u, 1);", 40);
  EXPECT_EQ(words[31], 32);
  EXPECT_EQ(words[39], 8);
}

TEST(EmulatedLanguage, BarriersCount) {
  EXPECT_EQ(words_of("out[i] = __syncthreads_count(i < 50);", 128)[3], 50);
  EXPECT_EQ(words_of("out[i] = __syncthreads_or(i == 3);", 128)[9], 1);
  EXPECT_EQ(words_of("out[i] = __syncthreads_and(i != 3);", 128)[9], 0);
}

TEST(EmulatedLanguage, AtomicsOfManyBlocks) {
  EmulatedDevice device;
  const DriverModule module = device.compile(R"(
__device__ int taken;
extern "C" __global__ void k(int* sum, float* total, unsigned* most, unsigned long long* wide) {
  atomicAdd(sum, 1);
  atomicAdd(total, 0.5f);
  atomicMax(most, blockIdx.x * 100 + threadIdx.x);
  atomicAdd(wide, 1ull << 33);
  if (threadIdx.x == 0) atomicAdd(&taken, 1);
  atomicCAS(sum + 1, 0, 7);
})");
  ASSERT_NE(module, nullptr) << device.log;
  int* sum = device.upload<int>({0, 0});
  float* total = device.upload<float>({0});
  unsigned* most = device.upload<unsigned>({0});
  auto* wide = device.upload<unsigned long long>({0});
  ASSERT_EQ(
      device.launch(module, "k", {.grid = {20, 1, 1}, .block = {64, 1, 1}}, sum, total, most, wide),
      DriverResult::success);
  EXPECT_EQ(device.download(sum, 2), (std::vector<int>{1280, 7}));
  EXPECT_EQ(device.download(total, 1)[0], 640.0f);
  EXPECT_EQ(device.download(most, 1)[0], 1963u);
  EXPECT_EQ(device.download(wide, 1)[0], 1280ull << 33);
}

TEST(EmulatedLanguage, IndicesHaveThreeDimensions) {
  EmulatedDevice device;
  const DriverModule module = device.compile(R"(
extern "C" __global__ void k(int* out) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
})");
  ASSERT_NE(module, nullptr) << device.log;
  int* out = device.make<int>(6 * 24);
  device.launch(module, "k", {.grid = {3, 2, 1}, .block = {4, 3, 2}}, out);
  const auto words = device.download(out, 6 * 24);
  for (int i = 0; i < 6 * 24; ++i) EXPECT_EQ(words[static_cast<size_t>(i)], i / 24 * 1000 + i % 24);
}

TEST(EmulatedLanguage, SixteenBitNumbersRoundAsTheHostsDo) {
  EmulatedDevice device;
  const DriverModule module = device.compile(
      "#include \"number.cuh\"\n"
      "extern \"C\" __global__ void k(const float* x, f16* h, bf16* b, float* wide) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  h[i] = to_f16(x[i]);\n  b[i] = to_bf16(x[i]);\n"
      "  wide[i] = to_float(f16{static_cast<uint16>(i)});\n}");
  ASSERT_NE(module, nullptr) << device.log;
  constexpr size_t kCount = 65536;
  std::vector<float> x(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t bits = i << 16 | (i * 40503u & 0xffff);
    std::memcpy(&x[i], &bits, 4);
  }
  auto* h = device.make<uint16_t>(kCount);
  auto* b = device.make<uint16_t>(kCount);
  auto* wide = device.make<float>(kCount);
  emulated::set_checked(false);
  device.launch(module, "k", {.grid = {256, 1, 1}, .block = {256, 1, 1}}, device.upload(x), h, b,
                wide);
  const auto hs = device.download(h, kCount), bs = device.download(b, kCount);
  const auto ws = device.download(wide, kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto bits_of = [](auto number) {
      uint16_t bits;
      std::memcpy(&bits, &number, 2);
      return bits;
    };
    Float16 half;
    const auto own = static_cast<uint16_t>(i);
    std::memcpy(static_cast<void*>(&half), &own, 2);
    const float widened = static_cast<float>(half);
    EXPECT_TRUE(std::isnan(widened) ? std::isnan(ws[i]) : widened == ws[i]) << i;
    if (std::isnan(x[i])) continue;
    ASSERT_EQ(hs[i], bits_of(Float16(x[i]))) << x[i];
    ASSERT_EQ(bs[i], bits_of(BFloat16(x[i]))) << x[i];
  }
}

TEST(EmulatedDriver, LaunchesThatCannotRunAreRefused) {
  EmulatedDevice device;
  const DriverModule module = device.compile(
      "extern \"C\" __global__ void __launch_bounds__(64) k() {}\n__global__ void hidden() {}");
  ASSERT_NE(module, nullptr) << device.log;
  EXPECT_EQ(device.launch(module, "k", {.block = {64, 1, 1}}), DriverResult::success);
  EXPECT_EQ(device.launch(module, "k", {.block = {65, 1, 1}}),
            DriverResult::launch_out_of_resources);
  EXPECT_EQ(device.launch(module, "k", {.block = {2048, 1, 1}}), DriverResult::invalid_value);
  EXPECT_EQ(device.launch(module, "k", {.shared_bytes = 50000}), DriverResult::invalid_value);
  EXPECT_EQ(device.launch(module, "hidden", {}), DriverResult::not_found);
}

TEST(EmulatedDriver, CopiesStayInsideAllocations) {
  EmulatedDevice device;
  DevicePointer memory;
  ASSERT_EQ(device.driver.mem_alloc(&memory, 16), DriverResult::success);
  char host[32] = {};
  EXPECT_EQ(device.driver.memcpy_htod_async(memory, host, 17, nullptr),
            DriverResult::invalid_value);
  EXPECT_EQ(device.driver.memcpy_dtoh_async(host, memory + 8, 9, nullptr),
            DriverResult::invalid_value);
  EXPECT_EQ(device.driver.mem_free(memory), DriverResult::success);
  EXPECT_EQ(device.driver.mem_free(memory), DriverResult::invalid_value);
}

TEST(EmulatedDriver, GraphsRunWhatWasCaptured) {
  EmulatedDevice device;
  const DriverApi& driver = device.driver;
  const DriverModule module =
      device.compile("extern \"C\" __global__ void k(int* x, int by) { *x += by; }");
  ASSERT_NE(module, nullptr) << device.log;
  int* x = device.upload<int>({1});
  DriverFunction function;
  ASSERT_EQ(driver.module_get_function(&function, module, "k"), DriverResult::success);
  DriverStream stream;
  driver.stream_create(&stream, 0);
  driver.stream_begin_capture(stream, CaptureMode::global);
  int by = 10;
  void* parameters[] = {&x, &by};
  driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  by = 99;  // parameters were taken when the launch was asked for
  DriverGraph graph;
  ASSERT_EQ(driver.stream_end_capture(stream, &graph), DriverResult::success);
  EXPECT_EQ(device.download(x, 1)[0], 1);
  DriverGraphExec exec;
  ASSERT_EQ(driver.graph_instantiate(&exec, graph, 0), DriverResult::success);
  driver.graph_launch(exec, stream);
  driver.graph_launch(exec, stream);
  EXPECT_EQ(device.download(x, 1)[0], 21);
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
  driver.stream_destroy(stream);
}

}  // namespace
}  // namespace dais::cuda
