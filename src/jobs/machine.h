#pragma once

#include <string>
#include <vector>

#include "jobs/model.h"

namespace dais::jobs {

/// What this machine has for jobs: the CPUs and memory that this process may use, and the NVIDIA
/// devices of the system. What cannot be read counts as none.
Host this_machine();

/// A GPU, or a part that MIG made of one, as programs are given it.
struct LocalDevice {
  std::string visible;  ///< what CUDA_VISIBLE_DEVICES calls it
  int minor = 0;        ///< of its file, /dev/nvidia0
  bool part = false;    ///< of MIG: the hardware keeps it to its memory and processors
  std::vector<std::string> files = {};  ///< devices that only its users open, such as "c 235:12"
};

/// The GPUs of this machine where MIG divides one of them, by NVIDIA's library; nothing where it
/// divides none, or where the library is missing: they go by their numbers then. `root` is where
/// /proc lies.
std::vector<LocalDevice> divided_devices(const std::string& nvml, const std::string& root = "");

/// Where the daemon of root keeps its data unless told.
inline constexpr const char* shared_data_folder = "/var/lib/dais";
/// Where a daemon of this user keeps its data unless told: $DAIS_HOME, /var/lib/dais for root, else
/// ~/.dais.
std::string default_data_folder();
/// The socket of the daemon that keeps its data there.
std::string socket_path(const std::string& data_folder);

}  // namespace dais::jobs
