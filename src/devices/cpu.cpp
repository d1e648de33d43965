#include "devices/cpu.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "base/cgroup.h"

namespace dais::devices {
namespace {

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CpuMeter::CpuMeter(std::string root, double over_s) : root_(std::move(root)), over_s_(over_s) {
  before_ = times();
}

// The first line: time for users, niced ones, the system, idle, waiting for storage (idle, too),
// for interrupts of two kinds, and taken by other machines of the host. What guests had is in the
// first.
std::optional<CpuMeter::Times> CpuMeter::times() const {
  std::ifstream file(root_ + "/proc/stat");
  std::string line, word;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream words(line);
  words >> word;
  if (word != "cpu") return std::nullopt;
  Times out;
  out.at_s = steady_s();
  constexpr int idle = 3, waiting = 4, counted = 8;
  uint64_t ticks = 0;
  int column = 0;
  for (; column < counted && words >> ticks; ++column) {
    out.all += ticks;
    if (column != idle && column != waiting) out.busy += ticks;
  }
  if (column <= idle) return std::nullopt;
  return out;
}

void CpuMeter::add_groups(CpuSample& out) const {
  std::ifstream file(root_ + "/proc/self/cgroup");
  const std::string membership(std::istreambuf_iterator<char>(file), {});
  const std::string mount = root_ + "/sys/fs/cgroup";
  out.group_cores = cpu_quota_cores(membership, mount);
  const auto memory = group_memory(membership, mount);
  if (!memory) return;
  out.group_memory_used_bytes = memory->used_bytes;
  out.group_memory_limit_bytes = memory->limit_bytes;
}

CpuSample CpuMeter::sample() {
  CpuSample out;
  std::ifstream file(root_ + "/proc/meminfo");
  std::string name;
  std::optional<int64_t> available;
  for (int64_t kib = 0; file >> name >> kib;) {
    if (name == "MemTotal:") out.memory_total_bytes = kib << 10;
    if (name == "MemAvailable:") available = kib << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  if (out.memory_total_bytes && available) {
    out.memory_used_bytes = *out.memory_total_bytes - *available;
  }
  add_groups(out);
  const std::lock_guard lock(mutex_);
  const auto now = times();
  if (!now) return out;
  if (latest_ && now->at_s - latest_->at_s >= over_s_) before_ = latest_;
  if (before_ && now->at_s - before_->at_s >= over_s_ && now->all > before_->all &&
      now->busy >= before_->busy) {
    out.utilisation = static_cast<double>(now->busy - before_->busy) /
                      static_cast<double>(now->all - before_->all);
  }
  if (!latest_ || now->at_s - latest_->at_s >= over_s_) latest_ = now;
  return out;
}

}  // namespace dais::devices
