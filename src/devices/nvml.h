#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/sample.h"

namespace dais::devices {

/// What programs can be given: a device, or one of the parts that MIG made of it.
struct Unit {
  int gpu = 0;                                 ///< the driver's number of the device
  int minor = 0;                               ///< of its file, /dev/nvidia0
  int part = -1;                               ///< number of the part; -1: a whole device
  int gpu_instance = 0, compute_instance = 0;  ///< of a part
  std::string uuid;                            ///< empty where it does not tell
};

/// NVIDIA's management library. Used by one thread at a time; a call may take milliseconds, and
/// longer when a driver is in trouble.
class Nvml {
 public:
  /// Opens a library by its path or name. Throws unavailable saying what is missing.
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;

  /// Devices that MIG divides are not among them, their parts are.
  std::vector<Unit> units() const;
  /// How many units there are. From now on these are the ones that sample() counts.
  int devices() const;
  /// Of a unit by its place among them. Throws unavailable when not even a handle can be had.
  DeviceSample sample(int device) const;

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

}  // namespace dais::devices
