#include "jobs/gpu_shares.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <tuple>

namespace dais::jobs {

std::vector<DeviceShare> shares_of(const JobRequest& request, const Placement& placement,
                                   int task) {
  // Places list the largest part first.
  std::vector<DevicePart> asked = request.gpu_parts;
  if (asked.empty()) asked.push_back({request.gpu_milli, request.gpu_mib});
  std::ranges::stable_sort(asked, std::greater<>(), &DevicePart::gpu_milli);
  std::vector<DeviceShare> out;
  for (const Slot& slot : placement) {
    if (slot.task != task || slot.device < 0) continue;
    DeviceShare share{slot.device, slot.gpu_milli, 0};
    if (out.size() < asked.size() && asked[out.size()].gpu_milli == slot.gpu_milli) {
      share.gpu_mib = asked[out.size()].gpu_mib;
    }
    out.push_back(share);
  }
  return out;
}

std::string runtime_limits(const std::vector<DeviceShare>& shares) {
  std::string out;
  for (const DeviceShare& share : shares) {
    if (!out.empty()) out += ',';
    if (share.gpu_mib > 0) {
      out += std::to_string(share.gpu_mib << 20);
    } else if (share.gpu_milli >= whole_gpu) {
      out += '1';
    } else {
      const std::string digits = std::to_string(whole_gpu + share.gpu_milli);
      out += "0." + digits.substr(1);
    }
  }
  return out;
}

std::string mps_limits(const std::vector<DeviceShare>& shares,
                       const std::map<int, int64_t>& memory_mib) {
  std::string out;
  for (size_t i = 0; i < shares.size(); ++i) {
    const DeviceShare& share = shares[i];
    int64_t mib = share.gpu_mib;
    const auto size = memory_mib.find(share.device);
    if (mib == 0 && share.gpu_milli < whole_gpu && size != memory_mib.end()) {
      mib = size->second * share.gpu_milli / whole_gpu;
    }
    if (mib <= 0) continue;
    out += (out.empty() ? "" : ",") + std::to_string(i) + "=" + std::to_string(mib) + "M";
  }
  return out;
}

std::string mps_pipe_folder() {
  const char* set = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string folder = set && *set ? set : "/tmp/nvidia-mps";
  struct stat status {};
  return stat((folder + "/control").c_str(), &status) == 0 ? folder : "";
}

bool runs_this_program(const std::string& path, const JobRequest& request) {
  struct stat own {
  }, its{};
  if (stat("/proc/self/exe", &own) != 0 || stat(path.c_str(), &its) != 0) return false;
  if (std::tie(own.st_dev, own.st_ino) != std::tie(its.st_dev, its.st_ino)) return false;
  static constexpr std::array harmless = {"DAIS_PARAM_", "DAIS_ARRAY_"};
  static constexpr std::array harmful = {"LD_", "DAIS_", "CUDA_"};
  const auto starts = [](const std::string& name, const auto& prefixes) {
    return std::ranges::any_of(prefixes,
                               [&name](const char* prefix) { return name.starts_with(prefix); });
  };
  for (const auto& [name, value] : request.environment) {
    if (starts(name, harmful) && !starts(name, harmless)) return false;
  }
  // Operators of the user's own are code of the user's own.
  return std::ranges::none_of(request.command,
                              [](const std::string& word) { return word.starts_with("--ops"); });
}

}  // namespace dais::jobs
