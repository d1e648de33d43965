#include "cli/device_use.h"

#include <cstdio>

#include "backends/cuda/use_meter.h"

namespace dais::cli {

namespace {

// The number by which the scheduler calls it. Parts of MIG have another word before the digits.
std::string name_of(const std::string& uuid, const nlohmann::ordered_json& status) {
  const auto digits = [](const std::string& text) { return text.substr(text.find('-') + 1); };
  for (const auto& device : status["devices"])
    if (digits(device["uuid"].get<std::string>()) == digits(uuid))
      return "GPU " + std::to_string(device["device"].get<int>());
  return uuid;
}

}  // namespace

nlohmann::ordered_json device_uses() {
  auto out = nlohmann::ordered_json::array();
  for (const cuda::PublishedUse& one : cuda::published_uses(cuda::use_folder())) {
    nlohmann::ordered_json entry{{"pid", one.pid}, {"program", one.program}};
    if (!one.missing.empty()) entry["missing"] = one.missing;
    for (const auto& [device, use] : one.uses)
      entry["devices"].push_back({{"uuid", device},
                                  {"kernels", use.kernels / use.seconds},
                                  {"idle_copying", use.copies / use.seconds},
                                  {"idle_synchronising", use.synchronising / use.seconds},
                                  {"idle_nothing_queued", use.nothing_queued / use.seconds},
                                  {"to_device_bytes_s", use.to_device_bytes / use.seconds},
                                  {"from_device_bytes_s", use.from_device_bytes / use.seconds}});
    out.push_back(std::move(entry));
  }
  return out;
}

void print_device_uses(const nlohmann::ordered_json& status) {
  for (const cuda::PublishedUse& one : cuda::published_uses(cuda::use_folder())) {
    if (!one.missing.empty()) {
      std::printf("process %d (%s): unknown what its device does: %s\n", one.pid,
                  one.program.c_str(), one.missing.c_str());
      continue;
    }
    for (const auto& [device, use] : one.uses) {
      const auto share = [&, seconds = use.seconds](double part) { return 100 * part / seconds; };
      std::printf(
          "process %d (%s) on %s: kernels %.0f %%, idle: copying %.0f %%, synchronising %.0f %%, "
          "nothing queued %.0f %%; %.0f / %.0f MB/s to and from it\n",
          one.pid, one.program.c_str(), name_of(device, status).c_str(), share(use.kernels),
          share(use.copies), share(use.synchronising), share(use.nothing_queued),
          use.to_device_bytes / use.seconds / 1e6, use.from_device_bytes / use.seconds / 1e6);
    }
  }
}

}  // namespace dais::cli
