#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/sample.h"

namespace dais {

/// What this machine's devices, and the processes that use them, tell at one moment. Whatever is
/// not told is missing, never 0.
struct DeviceReading {
  devices::CpuSample cpu;
  std::vector<devices::DeviceSample> gpus;  ///< in NVIDIA's order; of divided ones (MIG) the parts
  std::string gpus_missing;                 ///< why GPUs are not, or not all, among them
  /// What processes of dais do on each device and why it idles, where they publish it: those that
  /// were started with DAIS_DEVICE_USE naming the folder that this process has in it.
  std::vector<devices::ProcessUse> processes;
};

/// Reads the machine's devices. Used by one thread at a time.
class DeviceReader {
 public:
  /// Opens NVIDIA's management library where there is one. Never throws for want of it: readings
  /// say what is missing.
  DeviceReader();
  ~DeviceReader();
  DeviceReader(DeviceReader&&) noexcept;
  DeviceReader& operator=(DeviceReader&&) noexcept;

  /// A call may take milliseconds, and longer when a driver is in trouble. How busy the CPUs are is
  /// known from the second call on, if 0.2 s lie between the two.
  DeviceReading read();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace dais
