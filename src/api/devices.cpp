#include "dais/devices.h"

#include <optional>

#include "base/error.h"
#include "devices/cpu.h"
#include "devices/nvml.h"
#include "devices/use.h"

namespace dais {

struct DeviceReader::Body {
  devices::CpuMeter cpu{"", 0.2};
  std::optional<devices::Nvml> nvml;
  std::string missing;
  int count = 0;
};

DeviceReader::DeviceReader() : body_(std::make_unique<Body>()) {
  try {
    body_->nvml.emplace();
    body_->count = body_->nvml->devices();
  } catch (const Error& error) {
    body_->missing = error.problem();
  }
}
DeviceReader::~DeviceReader() = default;
DeviceReader::DeviceReader(DeviceReader&&) noexcept = default;
DeviceReader& DeviceReader::operator=(DeviceReader&&) noexcept = default;

DeviceReading DeviceReader::read() {
  DeviceReading out;
  out.cpu = body_->cpu.sample();
  out.gpus_missing = body_->missing;
  for (int device = 0; device < body_->count; ++device) try {
      out.gpus.push_back(body_->nvml->sample(device));
    } catch (const Error& error) {
      out.gpus_missing += (out.gpus_missing.empty() ? "" : "; ") + std::string("GPU ") +
                          std::to_string(device) + ": " + error.problem();
    }
  out.processes = devices::process_uses(devices::use_folder());
  return out;
}

}  // namespace dais
