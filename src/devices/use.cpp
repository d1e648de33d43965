#include "devices/use.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/span.h"

namespace dais::devices {
namespace {

/// The numbers of a published use, in the order of their lines.
constexpr std::pair<const char*, double DeviceUse::*> kNumbers[] = {
    {"seconds", &DeviceUse::seconds},
    {"kernels", &DeviceUse::kernels},
    {"copies", &DeviceUse::copies},
    {"synchronising", &DeviceUse::synchronising},
    {"waiting_for_data", &DeviceUse::waiting_for_data},
    {"nothing_queued", &DeviceUse::nothing_queued},
    {"to_device_bytes", &DeviceUse::to_device_bytes},
    {"from_device_bytes", &DeviceUse::from_device_bytes},
};

/// A line for a terminal: whoever may write to the folder may write anything.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::iscntrl(static_cast<unsigned char>(c)); },
      '?');
  return text;
}

bool read(const std::filesystem::path& path, ProcessUse& out) {
  constexpr size_t kMostBytes = size_t{64} << 10;  // some hundred devices
  std::ifstream file(path);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  std::istringstream lines(text);
  std::string line, key;
  while (std::getline(lines, line)) {
    std::istringstream words(printable(std::move(line)));
    words >> key >> std::ws;
    if (key == "program") std::getline(words, out.program);
    if (key == "missing") std::getline(words, out.missing);
    if (key == "at") words >> out.at;
    if (double cores = 0; key == "cores" && words >> cores) out.cores = cores;
    if (key == "device") words >> out.uses.emplace_back().device;
    for (const auto& [name, number] : kNumbers)
      if (key == name && !out.uses.empty()) words >> out.uses.back().use.*number;
  }
  std::erase_if(out.uses, [](const auto& one) { return !(one.use.seconds > 0); });
  return out.at > 0 && (!out.missing.empty() || !out.uses.empty());
}

/// The process that a file belongs to; 0: none.
int pid_of(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const char* const end = name.data() + name.size();
  int pid = 0;
  const auto [stop, failed] = std::from_chars(name.data(), end, pid);
  return failed == std::errc() && stop == end && pid > 0 ? pid : 0;
}

/// The second number of statm: pages that lie in memory.
std::optional<int64_t> resident(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t all = 0, pages = 0;
  if (!(file >> all >> pages)) return std::nullopt;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::filesystem::path use_folder() {
  const char* named = std::getenv("DAIS_DEVICE_USE");
  return named ? named : "";
}

std::vector<ProcessUse> process_uses(const std::filesystem::path& folder) {
  std::vector<ProcessUse> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    ProcessUse use;
    use.pid = pid_of(entry.path());
    // Signal 0 only asks; who may not ask is told that there is somebody.
    if (use.pid == 0 || (kill(use.pid, 0) != 0 && errno == ESRCH)) continue;
    // A pipe would never end.
    if (!entry.is_regular_file(failed)) continue;
    if (!read(entry.path(), use)) continue;
    use.memory_bytes = resident(use.pid);
    out.push_back(std::move(use));
  }
  std::sort(out.begin(), out.end(),
            [](const ProcessUse& a, const ProcessUse& b) { return a.pid < b.pid; });
  return out;
}

ProcessUse this_process() {
  ProcessUse out;
  out.pid = getpid();
  std::ifstream file("/proc/self/comm");
  std::getline(file, out.program);
  return out;
}

std::filesystem::path use_file(const std::filesystem::path& folder, int pid) {
  return folder / std::to_string(pid);
}

void publish(const std::filesystem::path& file, const ProcessUse& use) noexcept try {
  // Renamed into place, so that nobody reads half of it.
  const std::string fresh = file.string() + ".new";
  {
    std::ofstream to(fresh);
    to << "program " << use.program << "\nat " << std::fixed << unix_seconds() << "\n";
    if (!use.missing.empty()) to << "missing " << use.missing << "\n";
    if (use.cores) to << "cores " << *use.cores << "\n";
    for (const auto& [device, one] : use.uses) {
      to << "device " << device << "\n";
      for (const auto& [name, number] : kNumbers) to << name << " " << one.*number << "\n";
    }
  }
  std::filesystem::rename(fresh, file);
} catch (...) {
  // The next period is written anew.
}

}  // namespace dais::devices
