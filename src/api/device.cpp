#include "api/device.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "backends/cuda/backend.h"
#include "backends/cuda/use_meter.h"
#include "base/error.h"

namespace dais {
namespace {

/// Publishes what this process does with its devices, where that is asked for; one for all of them.
std::shared_ptr<cuda::UseMeter> meter_of(const cuda::Tables& tables) {
  static std::weak_ptr<cuda::UseMeter> known;
  const auto folder = cuda::use_folder();
  if (folder.empty() || !tables.hardware) return nullptr;
  auto meter = known.lock();
  static const auto library = cuda::load_cupti(0);
  if (!meter) {
    std::vector<std::string> devices;
    for (const cuda::DeviceInfo& device : cuda::list_devices(tables))
      devices.push_back(device.uuid);
    meter = std::make_shared<cuda::UseMeter>(library, folder, std::move(devices));
  }
  known = meter;
  return meter;
}

/// Devices stay open as long as somebody uses them.
std::shared_ptr<Backend> opened(const cuda::Tables& tables, int ordinal) {
  static std::mutex mutex;
  static std::map<std::pair<const cuda::Tables*, int>, std::weak_ptr<Backend>> known;
  const std::lock_guard lock(mutex);
  auto& entry = known[{&tables, ordinal}];
  auto backend = entry.lock();
  if (!backend) {
    auto device = cuda::Device::open(tables, ordinal);
    auto meter = meter_of(tables);
    // The meter ends behind the device's last work.
    backend = std::shared_ptr<cuda::CudaBackend>(
        new cuda::CudaBackend(std::move(device)),
        [meter = std::move(meter)](cuda::CudaBackend* made) { delete made; });
    entry = backend;
  }
  return backend;
}

bool in_path(const std::string& program) {
  const auto runnable = [](const std::filesystem::path& path) {
    std::error_code failed;
    return std::filesystem::exists(path, failed);
  };
  if (program.find('/') != std::string::npos) return runnable(program);
  const char* listed = std::getenv("PATH");
  std::string rest = listed ? listed : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    if (runnable(std::filesystem::path(rest.substr(0, end)) / program)) return true;
    rest = end == std::string::npos ? std::string() : rest.substr(end + 1);
  }
  return false;
}

DeviceChoice choose(const cuda::Tables& tables, int ordinal) {
  DeviceChoice out;
  out.backend = opened(tables, ordinal);
  out.text = out.backend->name();
  return out;
}

using Offers = std::map<std::string, std::function<std::shared_ptr<Backend>()>, std::less<>>;

Offers& offers() {
  static Offers known;
  return known;
}

int ordinal_of(std::string_view name) {
  if (name == "gpu") return 0;
  int out = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failed] = std::from_chars(name.data() + 4, end, out);
  if (failed != std::errc() || stop != end || out < 0)
    throw Error(Code::invalid_argument, "'" + std::string(name) + "' names no GPU", "",
                "Use gpu:0, gpu:1, …");
  return out;
}

}  // namespace

MatmulPrecision matmul_precision_from_name(std::string_view name) {
  static const std::vector<std::string> names{"highest", "high", "medium"};
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<MatmulPrecision>(i);
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no precision of products", "",
              "Use highest, high or medium" +
                  (guess.empty() ? std::string() : "; did you mean " + guess + "?"));
}

void set_matmul_precision(Backend& backend, MatmulPrecision precision) {
  static_cast<cuda::CudaBackend&>(backend).set_matmul_precision(precision);
}

void offer_device(const std::string& name, std::function<std::shared_ptr<Backend>()> open) {
  offers()[name] = std::move(open);
}

std::string emulated_problem() {
  const char* named = std::getenv("DAIS_CXX");
  const std::string compiler = named && *named ? named : "g++";
  return in_path(compiler) ? "" : "it compiles kernels with " + compiler + ", which is not there";
}

DeviceChoice choose_device(std::string_view name) {
  if (name == "cpu") return {nullptr, "CPU"};
  if (name == "gpu" || name.starts_with("gpu:"))
    return choose(cuda::system_tables(), ordinal_of(name));
  if (name == "emulated") {
    const std::string problem = emulated_problem();
    if (!problem.empty())
      throw Error(Code::unavailable, "the emulated device: " + problem, "",
                  "Install g++ or name a compiler like it in DAIS_CXX");
    return choose(cuda::emulated_tables(), 0);
  }
  if (name == "auto") {
    try {
      return choose(cuda::system_tables(), 0);
    } catch (const Error& error) {
      return {nullptr, "CPU, as no GPU is usable: " + error.problem()};
    }
  }
  if (const auto offered = offers().find(name); offered != offers().end()) {
    auto backend = offered->second();
    return {backend, backend->name()};
  }
  const std::string guess = nearest(name, {"cpu", "gpu", "auto", "emulated"});
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no device", "",
              "Use cpu, gpu, gpu:N, auto or emulated" +
                  (guess.empty() ? std::string() : "; did you mean " + guess + "?"));
}

}  // namespace dais
