#include "backends/cuda/use_meter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/span.h"

namespace dais::cuda {
namespace {

/// The numbers of a published use, in the order of their lines.
constexpr std::pair<const char*, double DeviceUse::*> kNumbers[] = {
    {"seconds", &DeviceUse::seconds},
    {"kernels", &DeviceUse::kernels},
    {"copies", &DeviceUse::copies},
    {"synchronising", &DeviceUse::synchronising},
    {"nothing_queued", &DeviceUse::nothing_queued},
    {"to_device_bytes", &DeviceUse::to_device_bytes},
    {"from_device_bytes", &DeviceUse::from_device_bytes},
};

std::string program_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

bool read(const std::filesystem::path& path, PublishedUse& out) {
  std::ifstream file(path);
  std::string line, key;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> key >> std::ws;
    if (key == "program") std::getline(words, out.program);
    if (key == "missing") std::getline(words, out.missing);
    if (key == "at") words >> out.at;
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

}  // namespace

std::filesystem::path use_folder() {
  const char* named = std::getenv("DAIS_DEVICE_USE");
  return named ? named : "";
}

std::vector<PublishedUse> published_uses(const std::filesystem::path& folder) {
  std::vector<PublishedUse> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    PublishedUse use;
    use.pid = pid_of(entry.path());
    // Signal 0 only asks; who may not ask is told that there is somebody.
    if (use.pid == 0 || (kill(use.pid, 0) != 0 && errno == ESRCH)) continue;
    if (read(entry.path(), use)) out.push_back(std::move(use));
  }
  std::sort(out.begin(), out.end(),
            [](const PublishedUse& a, const PublishedUse& b) { return a.pid < b.pid; });
  return out;
}

UseMeter::UseMeter(const Loaded<CuptiApi>& library, const std::filesystem::path& folder,
                   std::vector<std::string> devices, double every_s)
    : devices_(std::move(devices)) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!std::filesystem::is_directory(folder))
    throw Error(Code::unavailable, "the folder for what devices do cannot be made", folder.string(),
                "Let DAIS_DEVICE_USE name one that can");
  mine_.pid = getpid();
  mine_.program = program_name();
  file_ = folder / std::to_string(mine_.pid);
  mine_.missing = library.report.problem;
  if (mine_.missing.empty()) try {
      recorder_ = std::make_unique<ActivityRecorder>(library.api);
    } catch (const Error& error) {
      mine_.missing = error.problem();
    }
  if (recorder_)
    thread_ = std::thread([this, every_s] { run(every_s); });
  else
    publish(mine_);
}

UseMeter::~UseMeter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::error_code failed;
  std::filesystem::remove(file_, failed);
}

void UseMeter::run(double every_s) {
  std::vector<Activity> pending;
  std::set<int> used;
  double first = steady_seconds(), second = first;
  bool whole = false;  // whether a period lies between the two
  std::unique_lock lock(mutex_);
  while (
      !changed_.wait_for(lock, std::chrono::duration<double>(every_s), [&] { return stopping_; })) {
    const auto fresh = recorder_->take();
    pending.insert(pending.end(), fresh.begin(), fresh.end());
    for (const Activity& one : fresh)
      if (one.device >= 0 && static_cast<size_t>(one.device) < devices_.size())
        used.insert(one.device);
    if (whole) {
      mine_.uses.clear();
      for (const int device : used)
        mine_.uses.push_back(
            {devices_[static_cast<size_t>(device)], device_use(pending, device, first, second)});
      if (!used.empty()) publish(mine_);
      std::erase_if(pending,
                    [&](const Activity& one) { return one.start + one.seconds <= second; });
    }
    first = std::exchange(second, steady_seconds());
    whole = true;
  }
}

void UseMeter::publish(const PublishedUse& use) const noexcept try {
  // Renamed into place, so that nobody reads half of it.
  const std::string fresh = file_.string() + ".new";
  {
    std::ofstream to(fresh);
    to << "program " << use.program << "\nat " << std::fixed << unix_seconds() << "\n";
    if (!use.missing.empty()) to << "missing " << use.missing << "\n";
    for (const auto& [device, one] : use.uses) {
      to << "device " << device << "\n";
      for (const auto& [name, number] : kNumbers) to << name << " " << one.*number << "\n";
    }
  }
  std::filesystem::rename(fresh, file_);
} catch (...) {
  // A full disk must not end a training; the next period is written anew.
}

}  // namespace dais::cuda
