#pragma once

#include <cstdint>
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

/// What the CPUs and memory of this machine tell at one moment. What the system does not tell is
/// missing: never 0.
struct CpuSample {
  std::optional<double> utilisation;  ///< part of the CPUs' time that was spent on work, lately
  std::optional<int64_t> memory_used_bytes, memory_total_bytes;
  /// What control groups grant this process, where they limit it: a container's share.
  std::optional<double> group_cores;
  std::optional<int64_t> group_memory_used_bytes, group_memory_limit_bytes;
};

/// What of a stretch of time a device spent computing, and why it did not for the rest: of what the
/// reasons before it have left, each reason has what it explains.
struct DeviceUse {
  double seconds = 0;           ///< of the stretch; the sum of the next five
  double kernels = 0;           ///< at least one ran; of the CPU: a model or a training step
  double copies = 0;            ///< something was copied to, from or on it
  double synchronising = 0;     ///< the host waited for it
  double waiting_for_data = 0;  ///< the host had no data for what comes next
  double nothing_queued = 0;    ///< none of these: there was nothing to do
  double to_device_bytes = 0, from_device_bytes = 0;
};

/// What one process did with its devices in the stretch of time that it published last.
struct ProcessUse {
  struct OfDevice {
    std::string device;  ///< its UUID; "CPU"
    DeviceUse use;
  };
  int pid = 0;
  std::string program;
  double at = 0;                ///< seconds since 1970, when it was published
  std::string missing;          ///< why nothing is known of its GPUs; empty: nothing is missing
  std::vector<OfDevice> uses;   ///< of the devices that it has put work on
  std::optional<double> cores;  ///< CPUs that it kept busy
  std::optional<int64_t> memory_bytes;  ///< resident now
};

}  // namespace dais::devices
