#include "emulated_device.h"

// Kernels with one mistake each, beside the same kernel without it: the emulated device must find
// the mistake, at its line, and nothing else.
namespace dais::cuda {
namespace {

using emulated::Finding;
using emulated::FindingKind;

struct Planted {
  const char* name;
  FindingKind kind;
  int line;           ///< of the finding, counted from 1
  const char* right;  ///< replaced by...
  const char* wrong;
  LaunchShape shape;
  const char* source;
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

constexpr int kCount = 100;

const char* const kReverse = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float held[128];
  const int i = threadIdx.x;
  held[i] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = held[n - 1 - i];
})";

const char* const kTree = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
  extern __shared__ float part[];
  const int i = threadIdx.x;
  part[i] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (i < step) part[i] += part[i + step];
    __syncthreads();
  }
  if (i == 0) y[0] = part[0];
})";

const char* const kWarp = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float held[128];
  const int i = threadIdx.x, warp = i / 32 * 32, lane = i % 32;
  held[i] = i < n ? x[i] : 0.0f;
  __syncwarp();
  const float other = held[warp + (lane + 1) % 32];
  __syncwarp();
  held[i] = other;
  float sum = held[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) y[i / 32] = sum;
})";

const char* const kVector = R"(extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = threadIdx.x;
  if (i < n / 4) {
    const float4 v = *reinterpret_cast<const float4*>(x + 4 * i);
    y[i] = v.x + v.y + v.z + v.w;
  }
})";

const char* const kAsync = R"(#include "async.cuh"
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float held[128];
  const int i = threadIdx.x;
  copy_async<4>(held + i, x + i, i < n);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  if (i < n) y[i] = held[n - 1 - i];
})";

const LaunchShape kOneBlock{.block = {128, 1, 1}, .shared_bytes = 512};

const Planted kPlanted[] = {
    {"removed barrier", FindingKind::race, 4, "__syncthreads();", "", kOneBlock, kReverse},
    {"removed barrier in a loop", FindingKind::race, 7, "    __syncthreads();", "", kOneBlock,
     kTree},
    {"off by one when reading", FindingKind::out_of_bounds, 4, "i < n ? x[i]", "i <= n ? x[i]",
     kOneBlock, kReverse},
    {"off by one when writing", FindingKind::out_of_bounds, 6, "if (i < n) y[i]",
     "if (i <= n) y[i]", kOneBlock, kReverse},
    {"index below the first", FindingKind::out_of_bounds, 6, "y[i] =", "y[i - 1] =", kOneBlock,
     kReverse},
    {"shared array too small", FindingKind::out_of_bounds, 4, "part[i] = i", "part[i + 1] = i",
     kOneBlock, kTree},
    {"uninitialised shared memory", FindingKind::uninitialised, 6, "held[i] = i < n ? x[i] : 0.0f;",
     "if (i < n - 1) held[i] = x[i];", kOneBlock, kReverse},
    {"barrier in a branch", FindingKind::divergent_barrier, 5, "  __syncthreads();\n  if (i < n)",
     "  if (i < 64) __syncthreads();\n  if (i < n)", kOneBlock, kReverse},
    {"two barriers for one", FindingKind::divergent_barrier, 6, "  __syncthreads();\n  if (i < n)",
     "  if (i < 64) __syncthreads();\n  else __syncthreads();\n  if (i < n)", kOneBlock, kReverse},
    {"removed __syncwarp", FindingKind::race, 6,
     "  const float other = held[warp + (lane + 1) % 32];\n  __syncwarp();",
     "  const float other = held[warp + (lane + 1) % 32];\n", kOneBlock, kWarp},
    {"neighbour of another warp", FindingKind::race, 4, "held[warp + (lane + 1) % 32]",
     "held[(i + 1) % 128]", kOneBlock, kWarp},
    {"shuffle that some lanes skip", FindingKind::deadlock, 10, "  for (int step = 16",
     "  if (lane < 16) for (int step = 16", kOneBlock, kWarp},
    {"misaligned vector", FindingKind::misaligned, 4, "x + 4 * i", "x + 4 * i + 1", kOneBlock,
     kVector},
    {"vector across the end", FindingKind::out_of_bounds, 4, "i < n / 4", "i < n / 4 + 1",
     kOneBlock, kVector},
    {"copy that is not waited for", FindingKind::uninitialised, 9, "wait_copies<0>();", "",
     kOneBlock, kAsync},
    {"trap", FindingKind::trap, 5, "  __syncthreads();", "  __trap();", kOneBlock, kReverse},
};

class PlantedFault : public testing::TestWithParam<Planted> {
 protected:
  std::vector<Finding> run(const std::string& source) {
    EmulatedDevice device;
    const DriverModule module = device.compile(source);
    EXPECT_NE(module, nullptr) << device.log;
    const float* x = device.upload(std::vector<float>(kCount, 1.0f));
    float* y = device.make<float>(kCount);
    const DriverResult result = device.launch(module, "k", GetParam().shape, x, y, kCount);
    auto findings = emulated::take_findings();
    EXPECT_EQ(result == DriverResult::success, findings.empty());
    return findings;
  }
};

TEST_P(PlantedFault, IsFoundAtItsLine) {
  std::string source = GetParam().source;
  const std::string right = GetParam().right;
  // The last place: the first half of a pair stays.
  const size_t at = source.rfind(right);
  ASSERT_NE(at, std::string::npos);
  source.replace(at, right.size(), GetParam().wrong);
  // A missing barrier also lets threads read what nobody has written yet: one mistake may be found
  // in more than one way.
  bool found = false;
  std::string all;
  for (const Finding& finding : run(source)) {
    found = found || (finding.kind == GetParam().kind && finding.line == GetParam().line);
    EXPECT_EQ(finding.file, "test.cu") << finding.text();
    all += finding.text() + "\n";
  }
  EXPECT_TRUE(found) << all;
}

TEST_P(PlantedFault, IsAbsentFromTheRightKernel) {
  for (const Finding& finding : run(GetParam().source)) ADD_FAILURE() << finding.text();
}

INSTANTIATE_TEST_SUITE_P(Emulated, PlantedFault, testing::ValuesIn(kPlanted), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(EmulatedFaults, WritesBesideAnAllocationAreFoundWithoutChecks) {
  EmulatedDevice device;
  emulated::set_checked(false);
  const DriverModule module =
      device.compile("extern \"C\" __global__ void k(int* x, int n) { x[n] = 1; }");
  ASSERT_NE(module, nullptr) << device.log;
  int* x = device.make<int>(7);
  EXPECT_EQ(device.launch(module, "k", {}, x, 6), DriverResult::success);
  EXPECT_EQ(device.launch(module, "k", {}, x, 7), DriverResult::illegal_address);
  const auto findings = emulated::take_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::red_zone);
}

TEST(EmulatedFaults, FreedMemoryIsNamed) {
  EmulatedDevice device;
  const DriverModule module =
      device.compile("extern \"C\" __global__ void k(int* x) { x[0] = 1; }");
  DevicePointer memory;
  ASSERT_EQ(device.driver.mem_alloc(&memory, 64), DriverResult::success);
  ASSERT_EQ(device.driver.mem_free(memory), DriverResult::success);
  EXPECT_EQ(device.launch(module, "k", {}, memory), DriverResult::illegal_address);
  const auto findings = emulated::take_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].detail.find("freed"), std::string::npos) << findings[0].text();
}

TEST(EmulatedFaults, AFaultStaysUntilItIsTaken) {
  EmulatedDevice device;
  const DriverModule module = device.compile("extern \"C\" __global__ void k() { __trap(); }");
  EXPECT_EQ(device.launch(module, "k", {}), DriverResult::launch_failed);
  DevicePointer memory;
  EXPECT_EQ(device.driver.mem_alloc(&memory, 64), DriverResult::launch_failed);
  EXPECT_NE(emulated::describe_findings().find("test.cu:1: trap"), std::string::npos);
  emulated::take_findings();
  EXPECT_EQ(device.driver.stream_synchronize(nullptr), DriverResult::success);
}

TEST(EmulatedFaults, ErrorsOfTheTextAreToldAsNvrtcTellsThem) {
  EmulatedDevice device;
  EXPECT_EQ(device.compile("extern \"C\" __global__ void k() {\n  int x = y;\n}\n"), nullptr);
  EXPECT_NE(device.log.find("test.cu(2): error:"), std::string::npos) << device.log;
  EXPECT_EQ(device.compile("", {"--no-such-option"}), nullptr);
}

}  // namespace
}  // namespace dais::cuda
