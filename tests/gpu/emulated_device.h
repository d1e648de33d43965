#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cuda/emulated/emulated.h"
#include "backends/cuda/text.h"

namespace dais::cuda {

struct LaunchShape {
  emulated::Index grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned shared_bytes = 0;
};

/// For tests: the emulated device through the driver's tables, with the context current.
class EmulatedDevice {
 public:
  EmulatedDevice() {
    emulated::set_checked(true);
    emulated::set_recording(true);
    emulated::take_findings();
    emulated::take_launches();
    DriverContext context;
    EXPECT_EQ(driver.device_primary_ctx_retain(&context, 0), DriverResult::success);
    driver.ctx_set_current(context);
  }
  ~EmulatedDevice() {
    for (DriverModule module : modules_) driver.module_unload(module);
    for (DevicePointer memory : memory_) driver.mem_free(memory);
    emulated::take_findings();
    driver.ctx_set_current(nullptr);
    driver.device_primary_ctx_release(0);
  }
  EmulatedDevice(const EmulatedDevice&) = delete;

  /// Device memory with these contents, freed at the end.
  template <typename T>
  T* upload(const std::vector<T>& values) {
    T* memory = make<T>(values.size());
    driver.memcpy_htod_async(address(memory), values.data(), values.size() * sizeof(T), nullptr);
    return memory;
  }
  template <typename T>
  T* make(size_t count) {
    DevicePointer memory = 0;
    EXPECT_EQ(driver.mem_alloc(&memory, std::max<size_t>(count, 1) * sizeof(T)),
              DriverResult::success);
    memory_.push_back(memory);
    return reinterpret_cast<T*>(memory);
  }
  template <typename T>
  std::vector<T> download(const T* memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(driver.memcpy_dtoh_async(values.data(), address(memory), count * sizeof(T), nullptr),
              DriverResult::success);
    return values;
  }

  /// Compiles; fails the test with the log when that fails.
  DriverModule compile(const std::string& source, const std::vector<std::string>& options = {},
                       const std::string& name = "test.cu") {
    std::vector<const char*> names, contents, words;
    for (const Text& header : device_headers()) {
      names.push_back(header.name.data());
      contents.push_back(header.contents.data());
    }
    for (const std::string& option : options) words.push_back(option.c_str());
    NvrtcProgram program;
    nvrtc.create_program(&program, source.c_str(), name.c_str(), static_cast<int>(names.size()),
                         contents.data(), names.data());
    const NvrtcResult result =
        nvrtc.compile_program(program, static_cast<int>(words.size()), words.data());
    size_t bytes = 0;
    nvrtc.get_program_log_size(program, &bytes);
    log.resize(bytes);
    nvrtc.get_program_log(program, log.data());
    nvrtc.get_cubin_size(program, &bytes);
    std::string image(bytes, '\0');
    nvrtc.get_cubin(program, image.data());
    nvrtc.destroy_program(&program);
    DriverModule module = nullptr;
    if (result != NvrtcResult::success) return module;
    EXPECT_EQ(driver.module_load_data(&module, image.data()), DriverResult::success);
    modules_.push_back(module);
    return module;
  }
  DriverModule compile_embedded(std::string_view name,
                                const std::vector<std::string>& options = {}) {
    DriverModule module = compile(std::string(text(name)), options, std::string(name));
    EXPECT_NE(module, nullptr) << log;
    return module;
  }

  template <typename... Arguments>
  DriverResult launch(DriverModule module, const char* kernel, const LaunchShape& shape,
                      Arguments... arguments) {
    DriverFunction function;
    const DriverResult found = driver.module_get_function(&function, module, kernel);
    if (found != DriverResult::success) return found;
    void* parameters[] = {&arguments..., nullptr};
    const auto& [grid, block, shared_bytes] = shape;
    const DriverResult result =
        driver.launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             shared_bytes, nullptr, parameters, nullptr);
    return result == DriverResult::success ? driver.stream_synchronize(nullptr) : result;
  }

  /// The record of the one launch since the last call; its findings fail the test.
  emulated::LaunchRecord clean_launch() {
    for (const emulated::Finding& finding : emulated::take_findings())
      ADD_FAILURE() << finding.text();
    std::vector<emulated::LaunchRecord> launches = emulated::take_launches();
    EXPECT_EQ(launches.size(), 1u);
    return launches.empty() ? emulated::LaunchRecord{} : launches.back();
  }

  const DriverApi& driver = emulated::driver_api();
  const NvrtcApi& nvrtc = emulated::nvrtc_api();
  std::string log;  ///< of the last compilation

 private:
  template <typename T>
  static DevicePointer address(const T* memory) {
    return reinterpret_cast<DevicePointer>(memory);
  }

  std::vector<DevicePointer> memory_;
  std::vector<DriverModule> modules_;
};

}  // namespace dais::cuda
