#include "cli/device_use.h"

#include <cstdio>

namespace dais::cli {

namespace {

using Json = nlohmann::ordered_json;

// The number by which the scheduler calls it. Parts of MIG have another word before the digits.
std::string name_of(const std::string& uuid, const Json& status) {
  const auto digits = [](const std::string& text) { return text.substr(text.find('-') + 1); };
  for (const auto& device : status["devices"])
    if (digits(device["uuid"].get<std::string>()) == digits(uuid))
      return "GPU " + std::to_string(device["device"].get<int>());
  return uuid;
}

void print_use(const devices::DeviceUse& use) {
  const auto share = [&](double part) { return 100 * part / use.seconds; };
  std::printf("computing %.0f %%, idle: ", share(use.kernels));
  if (use.copies + use.to_device_bytes + use.from_device_bytes > 0)
    std::printf("copying %.0f %%, ", share(use.copies));
  std::printf("synchronising %.0f %%, waiting for data %.0f %%, nothing queued %.0f %%",
              share(use.synchronising), share(use.waiting_for_data), share(use.nothing_queued));
  if (use.to_device_bytes + use.from_device_bytes > 0)
    std::printf("; %.0f / %.0f MB/s to and from it", use.to_device_bytes / use.seconds / 1e6,
                use.from_device_bytes / use.seconds / 1e6);
  std::printf("\n");
}

}  // namespace

Json device_uses(const std::vector<devices::ProcessUse>& processes) {
  auto out = Json::array();
  for (const devices::ProcessUse& one : processes) {
    Json entry{{"pid", one.pid}, {"program", one.program}};
    entry["cores"] = one.cores ? Json(*one.cores) : Json();
    entry["memory_bytes"] = one.memory_bytes ? Json(*one.memory_bytes) : Json();
    if (!one.missing.empty()) entry["missing"] = one.missing;
    for (const auto& [device, use] : one.uses)
      entry["devices"].push_back({{"uuid", device},
                                  {"kernels", use.kernels / use.seconds},
                                  {"idle_copying", use.copies / use.seconds},
                                  {"idle_synchronising", use.synchronising / use.seconds},
                                  {"idle_waiting_for_data", use.waiting_for_data / use.seconds},
                                  {"idle_nothing_queued", use.nothing_queued / use.seconds},
                                  {"to_device_bytes_s", use.to_device_bytes / use.seconds},
                                  {"from_device_bytes_s", use.from_device_bytes / use.seconds}});
    out.push_back(std::move(entry));
  }
  return out;
}

void print_device_uses(const std::vector<devices::ProcessUse>& processes, const Json& status) {
  for (const devices::ProcessUse& one : processes) {
    std::printf("process %d (%s)", one.pid, one.program.c_str());
    if (one.cores) std::printf(": %.1f CPUs", *one.cores);
    if (one.memory_bytes)
      std::printf(", %.2f GiB", static_cast<double>(*one.memory_bytes) / (1 << 30));
    std::printf("\n");
    if (!one.missing.empty()) std::printf("  unknown what its GPUs do: %s\n", one.missing.c_str());
    for (const auto& [device, use] : one.uses) {
      std::printf("  %s: ", name_of(device, status).c_str());
      print_use(use);
    }
  }
}

}  // namespace dais::cli
