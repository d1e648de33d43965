#include "cli/device_use.h"

#include <cstdio>

#include "backends/cuda/use_meter.h"

namespace dais::cli {

nlohmann::ordered_json device_uses() {
  auto out = nlohmann::ordered_json::array();
  for (const cuda::PublishedUse& one : cuda::published_uses(cuda::use_folder())) {
    nlohmann::ordered_json entry{{"pid", one.pid}, {"program", one.program}};
    const cuda::DeviceUse& use = one.use;
    if (one.missing.empty())
      entry.update({{"kernels", use.kernels / use.seconds},
                    {"idle_copying", use.copies / use.seconds},
                    {"idle_synchronising", use.synchronising / use.seconds},
                    {"idle_nothing_queued", use.nothing_queued / use.seconds},
                    {"to_device_bytes_s", use.to_device_bytes / use.seconds},
                    {"from_device_bytes_s", use.from_device_bytes / use.seconds}});
    else
      entry["missing"] = one.missing;
    out.push_back(std::move(entry));
  }
  return out;
}

void print_device_uses() {
  for (const cuda::PublishedUse& one : cuda::published_uses(cuda::use_folder())) {
    if (!one.missing.empty()) {
      std::printf("process %d (%s): unknown what its device does: %s\n", one.pid,
                  one.program.c_str(), one.missing.c_str());
      continue;
    }
    const cuda::DeviceUse& use = one.use;
    const auto share = [&](double seconds) { return 100 * seconds / use.seconds; };
    std::printf(
        "process %d (%s): kernels %.0f %%, idle: copying %.0f %%, synchronising %.0f %%, nothing "
        "queued %.0f %%; %.0f / %.0f MB/s to and from the device\n",
        one.pid, one.program.c_str(), share(use.kernels), share(use.copies),
        share(use.synchronising), share(use.nothing_queued),
        use.to_device_bytes / use.seconds / 1e6, use.from_device_bytes / use.seconds / 1e6);
  }
}

}  // namespace dais::cli
