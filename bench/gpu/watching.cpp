// What watching a device costs the process that is watched, apart from CUPTI itself: the
// processor's time for records to be read, summed up by device and published, per kernel.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include "backends/cuda/use_meter.h"

namespace dais::cuda {
namespace {

constexpr size_t kRecordBytes = 216, kKernels = 4096;  // of one period

CuptiRequest request = nullptr;
CuptiComplete complete = nullptr;
size_t delivered = 0;

// As the library would after one period: a buffer of kernels that follow each other.
CuptiResult deliver(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most = 0;
  request(&buffer, &bytes, &most);
  static const char* const name = "kernel";
  for (uint64_t i = 0; i < kKernels; ++i) {
    uint8_t* const record = buffer + i * kRecordBytes;
    const auto put = [&](size_t byte, auto value) {
      std::memcpy(record + byte, &value, sizeof value);
    };
    const uint64_t start = (delivered + i) * 200'000;
    put(0, CuptiKind::concurrent_kernel);
    put(kCuptiKernel.start, start);
    put(kCuptiKernel.end, start + 150'000);
    put(kCuptiKernel.stream, uint32_t{7});
    put(kCuptiKernel.device, uint32_t{0});
    put(kCuptiKernelName, name);
  }
  delivered += kKernels;
  complete(nullptr, 0, buffer, bytes, kKernels * kRecordBytes);
  return CuptiResult::success;
}

CuptiApi table() {
  CuptiApi api = {};
  api.get_timestamp = [](uint64_t* nanoseconds) {
    *nanoseconds = 0;
    return CuptiResult::success;
  };
  api.enable = api.disable = [](CuptiKind) { return CuptiResult::success; };
  api.register_callbacks = [](CuptiRequest asked, CuptiComplete told) {
    request = asked;
    complete = told;
    return CuptiResult::success;
  };
  api.flush_all = deliver;
  api.next_record = [](uint8_t* buffer, size_t bytes, void** record) {
    const auto next = *record ? static_cast<uint8_t*>(*record) + kRecordBytes : buffer;
    if (next + kRecordBytes > buffer + bytes) return CuptiResult::max_limit_reached;
    *record = next;
    return CuptiResult::success;
  };
  return api;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int main_of(double seconds) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("dais_watching_" + std::to_string(getpid()));
  Loaded<CuptiApi> library;
  library.api = table();
  const double begin = processor_seconds();
  {
    UseMeter meter(folder, 0.05);
    meter.watch(library, {"GPU-a"});
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  const double spent = processor_seconds() - begin;
  std::filesystem::remove_all(folder);
  std::printf("%zu kernels, %.3f us of a core each, %.2f %% of one at 5,000 kernels a second\n",
              delivered, spent / static_cast<double>(delivered) * 1e6,
              spent / static_cast<double>(delivered) * 5000 * 100);
  return 0;
}

}  // namespace
}  // namespace dais::cuda

int main(int count, char** words) {
  return dais::cuda::main_of(count > 1 ? std::atof(words[1]) : 5);
}
