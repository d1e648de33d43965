#include "backends/cuda/emulated/driver_state.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace dais::cuda::emulated {
namespace {

/// Half of the machine's memory, or what DAIS_EMULATED_BYTES says.
size_t memory_limit() {
  if (const char* bytes = std::getenv("DAIS_EMULATED_BYTES"))
    return std::strtoull(bytes, nullptr, 10);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return static_cast<size_t>(pages) * static_cast<size_t>(page) / 2;
}

DriverResult result_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds: return DriverResult::illegal_address;
    case FindingKind::misaligned: return DriverResult::misaligned_address;
    case FindingKind::deadlock: return DriverResult::launch_timeout;
    default: return DriverResult::launch_failed;
  }
}

}  // namespace

DeviceState::DeviceState() : memory_(memory_limit()), pinned_(memory_limit()) {
  const char* mode = std::getenv("DAIS_EMULATED");
  checked = !mode || std::strcmp(mode, "fast") != 0;
}

DeviceState& DeviceState::instance() {
  static DeviceState state;
  return state;
}

bool DeviceState::holds(DevicePointer first, size_t bytes) const {
  const auto* address = reinterpret_cast<const void*>(first);
  return memory_.holds(address, bytes) || pinned_.holds(address, bytes);
}

void DeviceState::record(LaunchRecord record) {
  const std::lock_guard lock(mutex);
  for (const Finding& finding : record.findings) {
    if (pending_ == DriverResult::success) pending_ = result_of(finding.kind);
    findings_.push_back(finding);
  }
  if (recording) launches_.push_back(std::move(record));
}

void DeviceState::note_damage() {
  const std::lock_guard lock(mutex);
  for (std::string& detail : memory_.damaged()) {
    if (pending_ == DriverResult::success) pending_ = DriverResult::illegal_address;
    findings_.push_back({.kind = FindingKind::red_zone,
                         .kernel = "some kernel or copy",
                         .file = {},
                         .detail = std::move(detail)});
  }
}

std::vector<LaunchRecord> DeviceState::take_launches() {
  const std::lock_guard lock(mutex);
  return std::exchange(launches_, {});
}

std::vector<Finding> DeviceState::take_findings() {
  note_damage();
  const std::lock_guard lock(mutex);
  pending_ = DriverResult::success;
  return std::exchange(findings_, {});
}

std::string DeviceState::describe_findings() {
  note_damage();
  const std::lock_guard lock(mutex);
  std::string text;
  for (const Finding& finding : findings_) text += (text.empty() ? "" : "\n") + finding.text();
  return text;
}

bool DeviceState::knows(const void* handle) {
  const std::lock_guard lock(mutex);
  return handles.contains(const_cast<void*>(handle));
}

void DeviceState::learn(void* handle) {
  const std::lock_guard lock(mutex);
  handles.insert(handle);
}

bool DeviceState::forget(void* handle) {
  const std::lock_guard lock(mutex);
  return handles.erase(handle) > 0;
}

const DriverApi& driver_api() {
  static const DriverApi table = [] {
    DriverApi api = {};
    fill_device(api);
    fill_memory(api);
    fill_streams(api);
    fill_launches(api);
    return api;
  }();
  return table;
}

void set_checked(bool checked) { DeviceState::instance().checked = checked; }
bool checked() { return DeviceState::instance().checked; }
void set_recording(bool recording) { DeviceState::instance().recording = recording; }
std::vector<LaunchRecord> take_launches() { return DeviceState::instance().take_launches(); }
std::vector<Finding> take_findings() { return DeviceState::instance().take_findings(); }
std::string describe_findings() { return DeviceState::instance().describe_findings(); }

}  // namespace dais::cuda::emulated
