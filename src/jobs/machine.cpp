#include "jobs/machine.h"

#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/cgroup.h"

namespace dais::jobs {
namespace {

int64_t usable_cpu_milli() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const double cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double granted = cpu_quota_cores().value_or(cores);
  return std::llround(std::min(cores, granted) * 1000);
}

int64_t memory_mib() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (int64_t kib = 0; file >> name >> kib >> unit;) {
    if (name == "MemTotal:") return kib >> 10;
  }
  return 0;
}

int nvidia_devices() {
  int count = 0;
  while (count < max_devices && std::filesystem::exists("/dev/nvidia" + std::to_string(count))) {
    ++count;
  }
  return count;
}

}  // namespace

Host this_machine() {
  Host host;
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  host.name = name;
  host.devices = nvidia_devices();
  host.cpu_milli = usable_cpu_milli();
  host.memory_mib = memory_mib();
  return host;
}

std::string default_data_folder() {
  if (const char* folder = std::getenv("DAIS_HOME")) return folder;
  if (geteuid() == 0) return "/var/lib/dais";
  const passwd* user = getpwuid(geteuid());
  return std::string(user ? user->pw_dir : "/tmp") + "/.dais";
}

std::string socket_path(const std::string& data_folder) { return data_folder + "/dais.sock"; }

}  // namespace dais::jobs
