#include "jobs/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/cgroup.h"
#include "base/error.h"
#include "devices/nvml.h"
#include "jobs/account.h"

namespace dais::jobs {
namespace {

int64_t usable_cpu_milli() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const double cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double granted = cpu_quota_cores().value_or(cores);
  return std::llround(std::min(cores, granted) * 1000);
}

int64_t memory_mib() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (int64_t kib = 0; file >> name >> kib >> unit;) {
    if (name == "MemTotal:") return kib >> 10;
  }
  return 0;
}

int nvidia_devices() {
  int count = 0;
  while (count < max_devices && std::filesystem::exists("/dev/nvidia" + std::to_string(count))) {
    ++count;
  }
  return count;
}

// The number behind a word of a file; nothing when it is not there.
std::optional<int> number_in(const std::string& path, const std::string& word, bool before) {
  std::ifstream file(path);
  std::string previous;
  for (std::string one; file >> one; previous = one) {
    const std::string& key = before ? one : previous;
    const std::string& value = before ? previous : one;
    if (key == word && !value.empty() && std::isdigit(static_cast<unsigned char>(value[0]))) {
      return std::atoi(value.c_str());
    }
  }
  return std::nullopt;
}

// The files that give access to a part: of its GPU instance and of its compute instance.
std::vector<std::string> access_files(const devices::Unit& unit, const std::string& root) {
  const auto major = number_in(root + "/proc/devices", "nvidia-caps", true);
  const std::string instance = root + "/proc/driver/nvidia/capabilities/gpu" +
                               std::to_string(unit.minor) + "/mig/gi" +
                               std::to_string(unit.gpu_instance);
  const std::string compute = instance + "/ci" + std::to_string(unit.compute_instance);
  std::vector<std::string> out;
  for (const std::string& folder : {instance, compute}) {
    const auto minor = number_in(folder + "/access", "DeviceFileMinor:", false);
    if (!major || !minor) return {};
    out.push_back("c " + std::to_string(*major) + ":" + std::to_string(*minor));
  }
  return out;
}

}  // namespace

std::vector<LocalDevice> divided_devices(const std::string& nvml, const std::string& root) {
  std::vector<devices::Unit> units;
  try {
    units = devices::Nvml(nvml).units();
  } catch (const Error&) {
    return {};
  }
  std::vector<LocalDevice> out;
  for (const devices::Unit& unit : units) {
    LocalDevice device{
        unit.uuid.empty() ? std::to_string(unit.gpu) : unit.uuid, unit.minor, unit.part >= 0, {}};
    if (device.part) device.files = access_files(unit, root);
    if (out.size() < max_devices) out.push_back(std::move(device));
  }
  const bool divided =
      std::ranges::any_of(units, [](const devices::Unit& unit) { return unit.part >= 0; });
  return divided ? out : std::vector<LocalDevice>();
}

Host this_machine() {
  Host host;
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  host.name = name;
  host.devices = nvidia_devices();
  host.cpu_milli = usable_cpu_milli();
  host.memory_mib = memory_mib();
  return host;
}

std::string default_data_folder() {
  if (const char* folder = std::getenv("DAIS_HOME")) return folder;
  if (geteuid() == 0) return shared_data_folder;
  const std::string home = home_folder();
  return (home == "/" ? "/tmp" : home) + "/.dais";
}

std::string socket_path(const std::string& data_folder) { return data_folder + "/dais.sock"; }

}  // namespace dais::jobs
