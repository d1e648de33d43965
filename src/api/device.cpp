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

/// Publishes what this process does, where that is asked for, until it ends: on the CPU and, with
/// the tables of hardware, on its GPUs.
void publish_use(const cuda::Tables* tables) {
  static std::mutex mutex;
  static std::unique_ptr<cuda::UseMeter> meter;
  const auto folder = devices::use_folder();
  if (folder.empty()) return;
  const std::lock_guard lock(mutex);
  if (!meter) meter = std::make_unique<cuda::UseMeter>(folder);
  if (!tables || !tables->hardware) return;
  static const auto library = cuda::load_cupti(0);
  std::vector<std::string> uuids;
  for (const cuda::DeviceInfo& device : cuda::list_devices(*tables)) uuids.push_back(device.uuid);
  meter->watch(library, std::move(uuids));
}

/// What is known under a key as long as somebody uses it; `make` makes it anew.
template <typename T, typename Key, typename Make>
std::shared_ptr<T> shared(std::map<Key, std::weak_ptr<T>>& known, const Key& key, Make&& make) {
  auto& entry = known[key];
  auto out = entry.lock();
  if (!out) entry = out = make();
  return out;
}

/// Backends of several precisions share one device.
std::shared_ptr<Backend> opened(const cuda::Tables& tables, int ordinal,
                                MatmulPrecision precision) {
  using Place = std::pair<const cuda::Tables*, int>;
  static std::mutex mutex;
  static std::map<Place, std::weak_ptr<cuda::Device>> devices;
  static std::map<std::pair<Place, MatmulPrecision>, std::weak_ptr<Backend>> backends;
  const std::lock_guard lock(mutex);
  const Place place{&tables, ordinal};
  return shared(backends, {place, precision}, [&]() -> std::shared_ptr<Backend> {
    auto device = shared(devices, place, [&] {
      auto made = cuda::Device::open(tables, ordinal);
      publish_use(&tables);
      return made;
    });
    return std::make_shared<cuda::CudaBackend>(std::move(device), precision);
  });
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

DeviceChoice choose(const cuda::Tables& tables, int ordinal, MatmulPrecision precision) {
  DeviceChoice out;
  out.backend = opened(tables, ordinal, precision);
  out.text = out.backend->name();
  return out;
}

using Offers = std::map<std::string, OpenDevice, std::less<>>;

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

void offer_device(const std::string& name, OpenDevice open) { offers()[name] = std::move(open); }

std::string emulated_problem() {
  const char* named = std::getenv("DAIS_CXX");
  const std::string compiler = named && *named ? named : "g++";
  return in_path(compiler) ? "" : "it compiles kernels with " + compiler + ", which is not there";
}

DeviceChoice choose_device(std::string_view name, MatmulPrecision precision) {
  publish_use(nullptr);
  if (name == "cpu" && precision != MatmulPrecision::highest)
    throw Error(Code::unsupported, "the CPU computes products of f32 in f32", "",
                "Ask for the highest precision of products, or for a GPU");
  if (name == "cpu") return {nullptr, "CPU"};
  if (name == "gpu" || name.starts_with("gpu:"))
    return choose(cuda::system_tables(), ordinal_of(name), precision);
  if (name == "emulated") {
    const std::string problem = emulated_problem();
    if (!problem.empty())
      throw Error(Code::unavailable, "the emulated device: " + problem, "",
                  "Install g++ or name a compiler like it in DAIS_CXX");
    return choose(cuda::emulated_tables(), 0, precision);
  }
  if (name == "auto") {
    try {
      return choose(cuda::system_tables(), 0, precision);
    } catch (const Error& error) {
      return {nullptr, "CPU, as no GPU is usable: " + error.problem()};
    }
  }
  if (const auto offered = offers().find(name); offered != offers().end()) {
    auto backend = offered->second(precision);
    return {backend, backend->name()};
  }
  const std::string guess = nearest(name, {"cpu", "gpu", "auto", "emulated"});
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no device", "",
              "Use cpu, gpu, gpu:N, auto or emulated" +
                  (guess.empty() ? std::string() : "; did you mean " + guess + "?"));
}

}  // namespace dais
