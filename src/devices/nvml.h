#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dais::devices {

/// A process that computes on a device.
struct ProcessSample {
  int pid = 0;
  std::optional<int64_t> memory_bytes;
  std::optional<double> utilisation;  ///< part of the time that one of its kernels ran
};

/// What one device tells at one moment. Whatever it does not tell is missing: never 0.
struct DeviceSample {
  int index = 0;
  std::string name, uuid;
  std::optional<double> utilisation;  ///< part of the last moments that at least one kernel ran
  std::optional<int64_t> memory_used_bytes, memory_total_bytes, memory_free_bytes;
  std::optional<int64_t> memory_reserved_bytes;          ///< by the driver; not among the used ones
  std::optional<double> sent_bytes_s, received_bytes_s;  ///< over PCIe, seen from the device
  std::optional<double> power_w, energy_j, temperature_c;
  std::optional<double> core_clock_mhz, memory_clock_mhz;
  std::optional<int64_t> ecc_corrected,
      ecc_uncorrected;  ///< errors of memory since the driver came
  /// The number of the last critical error that the driver reported (XID) since this library was
  /// opened; 0: none. Of the whole device.
  std::optional<int64_t> xid;
  std::optional<std::vector<ProcessSample>> processes;
  /// What could not be read and why, one line each.
  std::vector<std::string> missing;
};

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
