#include "jobs/control_group.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include "jobs/device_rules.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

bool write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::optional<int64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The value after a key, one pair a line.
std::optional<int64_t> read_field(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  for (int64_t value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool usable(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return !error && fs::exists(folder / "cgroup.procs", error);
}

}  // namespace

ControlGroups::ControlGroups(std::string name, const fs::path& mount) : name_(std::move(name)) {
  for (const char* wall : {"cpu", "memory", "pids", "devices"}) find(wall, mount);
  // Only version 2 can kill a whole group at once. Beside groups of version 1 it is left out: to
  // join a group delays a start by 6 to 10 ms, and the shim kills what an attempt leaves behind.
  const bool first_version = !controllers_.empty() && controllers_[0].version == 1;
  for (const fs::path& root : {mount, mount / "unified"}) {
    if (first_version || !fs::exists(root / "cgroup.controllers") || !usable(root / name_))
      continue;
    controllers_.push_back({"kill", 2, root / name_});
    return;
  }
  missing_.push_back("kill: no writable control group of version 2 in " + mount.string());
}

void ControlGroups::find(const std::string& wall, const fs::path& mount) {
  const fs::path unified = mount / name_;
  if (fs::exists(mount / "cgroup.controllers")) {
    if (wall == "devices" && usable(unified) && can_deny_devices(unified)) {
      controllers_.push_back({wall, 2, unified});
      return;
    }
    // Controllers reach children only when each parent hands them on.
    write_text(mount / "cgroup.subtree_control", "+" + wall);
    if (usable(unified)) write_text(unified / "cgroup.subtree_control", "+" + wall);
    if (read_text(unified / "cgroup.subtree_control").find(wall) != std::string::npos) {
      controllers_.push_back({wall, 2, unified});
      return;
    }
  }
  const fs::path own = mount / wall / name_;
  if (fs::exists(mount / wall) && usable(own)) {
    controllers_.push_back({wall, 1, own});
    return;
  }
  missing_.push_back(wall + ": no writable control group in " + mount.string());
}

std::vector<std::string> ControlGroups::walls() const {
  std::vector<std::string> out;
  for (const Controller& controller : controllers_) out.push_back(controller.wall);
  return out;
}

void ControlGroups::limit(const Controller& controller, const fs::path& folder,
                          const GroupLimits& limits) {
  const bool v2 = controller.version == 2;
  if (controller.wall == "cpu" && limits.cpu_milli > 0) {
    const int64_t quota = std::max<int64_t>(limits.cpu_milli * 100, 1000);  // of 100 ms, in µs
    if (v2) {
      write_text(folder / "cpu.max", std::to_string(quota) + " 100000");
    } else {
      write_text(folder / "cpu.cfs_period_us", "100000");
      write_text(folder / "cpu.cfs_quota_us", std::to_string(quota));
    }
  }
  if (controller.wall == "memory" && limits.memory_mib > 0) {
    const std::string bytes = std::to_string(limits.memory_mib << 20);
    write_text(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"), bytes);
    if (!v2) write_text(folder / "memory.memsw.limit_in_bytes", bytes);
    if (v2) write_text(folder / "memory.swap.max", "0");
  }
  if (controller.wall == "pids" && limits.processes > 0) {
    write_text(folder / "pids.max", std::to_string(limits.processes));
  }
  if (controller.wall == "devices" && v2) {
    deny_devices(folder, limits.denied_devices);
  } else if (controller.wall == "devices") {
    for (const std::string& device : limits.denied_devices) {
      write_text(folder / "devices.deny", device + " rwm");
    }
  }
}

bool ControlGroups::holds(const std::string& wall) const {
  return std::ranges::any_of(controllers_,
                             [&wall](const Controller& one) { return one.wall == wall; });
}

std::vector<std::string> ControlGroups::create(const std::string& attempt,
                                               const GroupLimits& limits) {
  std::set<std::string> procs;
  for (const Controller& controller : controllers_) {
    const fs::path folder = controller.folder / attempt;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) continue;
    limit(controller, folder, limits);
    procs.insert((folder / "cgroup.procs").string());
  }
  return {procs.begin(), procs.end()};
}

bool ControlGroups::renamable() const {
  return !controllers_.empty() &&
         std::ranges::all_of(controllers_, [](const Controller& one) { return one.version == 1; });
}

bool ControlGroups::rename(const std::string& from, const std::string& attempt,
                           const GroupLimits& limits) {
  for (const Controller& controller : controllers_) {
    std::error_code error;
    fs::rename(controller.folder / from, controller.folder / attempt, error);
    if (error) return false;
    limit(controller, controller.folder / attempt, limits);
  }
  return true;
}

void ControlGroups::remove_all(const std::string& prefix) const {
  for (const Controller& controller : controllers_) {
    std::error_code ignored;
    std::vector<fs::path> found;
    for (const auto& item : fs::directory_iterator(controller.folder, ignored)) {
      if (item.path().filename().string().starts_with(prefix)) found.push_back(item.path());
    }
    for (const fs::path& folder : found) fs::remove(folder, ignored);
  }
}

std::vector<std::string> ControlGroups::names() const {
  std::set<std::string> names;
  for (const Controller& controller : controllers_) {
    std::error_code ignored;
    for (const auto& item : fs::directory_iterator(controller.folder, ignored)) {
      if (item.is_directory(ignored)) names.insert(item.path().filename().string());
    }
  }
  return {names.begin(), names.end()};
}

GroupReport ControlGroups::report(const std::string& attempt) const {
  GroupReport report;
  for (const Controller& controller : controllers_) {
    const fs::path folder = controller.folder / attempt;
    const bool v2 = controller.version == 2;
    if (controller.wall == "memory") {
      report.memory_peak_bytes =
          read_number(folder / (v2 ? "memory.peak" : "memory.max_usage_in_bytes"));
      report.memory_kills =
          read_field(folder / (v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
    } else if (controller.wall == "pids") {
      report.processes_refused = read_field(folder / "pids.events", "max");
    } else if (controller.wall == "cpu") {
      const auto used = v2 ? read_field(folder / "cpu.stat", "usage_usec")
                           : read_number(folder / "cpuacct.usage");
      if (used) report.cpu_s = static_cast<double>(*used) / (v2 ? 1e6 : 1e9);
    }
  }
  return report;
}

std::vector<int> ControlGroups::processes(const std::string& attempt) const {
  std::vector<int> out;
  if (controllers_.empty()) return out;
  std::ifstream procs(controllers_[0].folder / attempt / "cgroup.procs");
  for (int pid = 0; procs >> pid;) out.push_back(pid);
  return out;
}

void ControlGroups::kill(const std::string& attempt) const {
  for (const Controller& controller : controllers_) {
    const fs::path folder = controller.folder / attempt;
    if (write_text(folder / "cgroup.kill", "1")) continue;
    std::ifstream procs(folder / "cgroup.procs");
    for (pid_t pid = 0; procs >> pid;) ::kill(pid, SIGKILL);
  }
}

bool ControlGroups::remove(const std::string& attempt) const {
  bool all = true;
  for (const Controller& controller : controllers_) {
    std::error_code error;
    fs::remove(controller.folder / attempt, error);
    all = all && !error;
  }
  return all;
}

void ControlGroups::dissolve() const {
  for (const Controller& controller : controllers_) {
    std::error_code ignored;
    fs::remove(controller.folder, ignored);
  }
}

}  // namespace dais::jobs
