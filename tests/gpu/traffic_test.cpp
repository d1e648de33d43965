#include "emulated_device.h"

// The counters of the emulated device against figures worked out by hand, for kernels of one warp
// or a few. A warp of 32 floats side by side is 128 bytes: 4 sectors of 32.
namespace dais::cuda {
namespace {

emulated::Traffic traffic_of(const std::string& body, unsigned threads = 32,
                             const std::string& head = "") {
  EmulatedDevice device;
  const DriverModule module =
      device.compile(head + "extern \"C\" __global__ void k(const float* x, float* y) {\n" +
                     "  const int i = threadIdx.x;\n" + body + "\n}");
  EXPECT_NE(module, nullptr) << device.log;
  const float* x = device.upload(std::vector<float>(4096, 1.0f));
  float* y = device.make<float>(4096);
  device.launch(module, "k", {.block = {threads, 1, 1}, .shared_bytes = 8448}, x, y);
  return device.clean_launch().traffic;
}

void expect_global(const emulated::GlobalTraffic& is, uint64_t requests, uint64_t sectors,
                   uint64_t ideal, uint64_t bytes) {
  EXPECT_EQ(is.requests, requests);
  EXPECT_EQ(is.sectors, sectors);
  EXPECT_EQ(is.ideal, ideal);
  EXPECT_EQ(is.bytes, bytes);
}

TEST(EmulatedTraffic, NeighbouringFloatsAreFullyCoalesced) {
  const auto traffic = traffic_of("y[i] = x[i];", 64);
  expect_global(traffic.reads, 2, 8, 8, 256);
  expect_global(traffic.writes, 2, 8, 8, 256);
  EXPECT_EQ(traffic.reads.efficiency(), 1.0);
}

TEST(EmulatedTraffic, VectorsAreOneRequest) {
  const auto traffic =
      traffic_of("reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];");
  expect_global(traffic.reads, 1, 16, 16, 512);
  expect_global(traffic.writes, 1, 16, 16, 512);
}

TEST(EmulatedTraffic, PacksAreOneRequest) {
  const auto traffic =
      traffic_of("store_pack(y + 2 * i, load_pack<2>(x + 2 * i));", 32, "#include \"pack.cuh\"\n");
  expect_global(traffic.reads, 1, 8, 8, 256);
  expect_global(traffic.writes, 1, 8, 8, 256);
}

TEST(EmulatedTraffic, StridesCostASectorEach) {
  const auto traffic = traffic_of("y[i] = x[8 * i];");
  expect_global(traffic.reads, 1, 32, 4, 128);
  EXPECT_EQ(traffic.reads.efficiency(), 0.125);
}

TEST(EmulatedTraffic, OneAddressForAllIsOneSector) {
  expect_global(traffic_of("y[i] = x[7];").reads, 1, 1, 1, 128);
}

TEST(EmulatedTraffic, AShiftTouchesOneSectorMore) {
  expect_global(traffic_of("y[i] = x[i + 1];").reads, 1, 5, 4, 128);
}

TEST(EmulatedTraffic, EachTurnOfALoopIsARequest) {
  const auto traffic = traffic_of(
      "float s = 0; for (int j = 0; j < 10; ++j) s += x[i + 32 * j];\n"
      "y[i] = s;");
  expect_global(traffic.reads, 10, 40, 40, 1280);
}

TEST(EmulatedTraffic, LanesThatTakeNoPartCostNothing) {
  expect_global(traffic_of("if (i < 9) y[i] = x[i];").reads, 1, 2, 2, 36);
}

TEST(EmulatedTraffic, AtomicsAreCountedApart) {
  const auto traffic = traffic_of("atomicAdd(y + i / 16, 1.0f);");
  expect_global(traffic.atomics, 1, 1, 1, 128);
  EXPECT_EQ(traffic.writes.requests, 0u);
}

TEST(EmulatedTraffic, BarriersAreCountedOncePerBlock) {
  EXPECT_EQ(traffic_of("__syncthreads(); __syncthreads();", 128).barriers, 2u);
}

struct Banks {
  const char* name;
  const char* body;
  uint64_t requests, passes, conflicts;
};
void PrintTo(const Banks& banks, std::ostream* out) { *out << banks.name; }

class SharedBanks : public testing::TestWithParam<Banks> {};

TEST_P(SharedBanks, AreCounted) {
  const Banks& wanted = GetParam();
  const auto shared =
      traffic_of(std::string("extern __shared__ float s[];\n") + wanted.body).shared;
  EXPECT_EQ(shared.requests, wanted.requests);
  EXPECT_EQ(shared.passes, wanted.passes);
  EXPECT_EQ(shared.conflicts, wanted.conflicts);
}

INSTANTIATE_TEST_SUITE_P(
    Emulated, SharedBanks,
    testing::Values(
        Banks{"neighbours", "s[i] = 1;", 1, 1, 0}, Banks{"stride_2", "s[2 * i] = 1;", 1, 2, 1},
        Banks{"stride_32", "s[32 * i] = 1;", 1, 32, 31},
        Banks{"stride_33", "s[33 * i] = 1;", 1, 1, 0},
        Banks{"one_word", "if (i == 0) s[0] = 1; __syncwarp(); y[i] = s[0];", 2, 2, 0},
        Banks{"halves_of_words", "reinterpret_cast<short*>(s)[i] = 1;", 1, 1, 0},
        Banks{"doubles", "reinterpret_cast<double*>(s)[i] = 1;", 1, 2, 0},
        Banks{"doubles_stride_2", "reinterpret_cast<double*>(s)[2 * i] = 1;", 1, 4, 2},
        Banks{"vectors", "reinterpret_cast<float4*>(s)[i] = make_float4(1, 1, 1, 1);", 1, 4, 0},
        Banks{"vectors_stride_2", "reinterpret_cast<float4*>(s)[2 * i] = make_float4(1, 1, 1, 1);",
              1, 8, 4}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dais::cuda
