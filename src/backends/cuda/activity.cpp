#include "backends/cuda/activity.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/span.h"

namespace dais::cuda {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr CuptiKind kKinds[] = {CuptiKind::copy, CuptiKind::fill, CuptiKind::concurrent_kernel,
                                CuptiKind::synchronization};

/// What the library's callbacks, which carry no data of ours, write to.
struct Collected {
  std::mutex mutex;
  const CuptiApi* api = nullptr;  ///< null: nobody records
  double offset = 0;              ///< steady seconds minus the library's
  std::vector<Activity> activities;
};
Collected& collected() {
  static Collected one;
  return one;
}

template <typename T>
T at(const void* record, size_t byte) {
  T out;
  std::memcpy(&out, static_cast<const uint8_t*>(record) + byte, sizeof out);
  return out;
}

Activity read(const void* record, const CuptiLayout& layout, double offset) {
  Activity out;
  const auto start = at<uint64_t>(record, layout.start), end = at<uint64_t>(record, layout.end);
  out.start = static_cast<double>(start) * 1e-9 + offset;
  out.seconds = end > start ? static_cast<double>(end - start) * 1e-9 : 0;
  out.stream = at<uint32_t>(record, layout.stream);
  if (layout.device != 0) out.device = static_cast<int>(at<uint32_t>(record, layout.device));
  return out;
}

/// False: a record of no interest.
bool parse(const void* record, double offset, Activity& out) {
  switch (at<CuptiKind>(record, 0)) {
    case CuptiKind::concurrent_kernel: {
      out = read(record, kCuptiKernel, offset);
      const char* name = at<const char*>(record, kCuptiKernelName);
      out.name = name ? name : "kernel";
      return true;
    }
    case CuptiKind::copy: {
      out = read(record, kCuptiMemory, offset);
      const auto kind = at<uint8_t>(record, kCuptiCopyKind);
      out.kind = kind == 1   ? Activity::Kind::to_device
                 : kind == 2 ? Activity::Kind::from_device
                             : Activity::Kind::on_device;
      out.bytes = at<uint64_t>(record, kCuptiBytes);
      return true;
    }
    case CuptiKind::fill:
      out = read(record, kCuptiMemory, offset);
      out.kind = Activity::Kind::fill;
      out.bytes = at<uint64_t>(record, kCuptiBytes);
      return true;
    case CuptiKind::synchronization:
      out = read(record, kCuptiSynchronization, offset);
      out.kind = Activity::Kind::wait;
      return true;
  }
  return false;
}

void request(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void complete(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::unique_ptr<uint8_t, void (*)(void*)> owned(buffer, std::free);
  Collected& to = collected();
  const std::lock_guard lock(to.mutex);
  if (!to.api || !buffer) return;
  void* record = nullptr;
  while (to.api->next_record(buffer, valid_bytes, &record) == CuptiResult::success) {
    Activity activity;
    if (parse(record, to.offset, activity)) to.activities.push_back(std::move(activity));
  }
}

void check(const CuptiApi& api, CuptiResult result) {
  if (result == CuptiResult::success) return;
  const char* text = nullptr;
  api.get_result_string(result, &text);
  const bool rights = result == CuptiResult::insufficient_privileges;
  throw Error(
      Code::unavailable,
      std::string("CUPTI: ") + (text ? text : "error " + std::to_string(static_cast<int>(result))),
      "GPU",
      rights ? "Ask the administrator to set NVreg_RestrictProfilingToAdminUsers=0"
             : "Trace without the device's lanes");
}

bool concerns(const Activity& activity, int device) {
  return activity.device == device || activity.device == Activity::kAny;
}

using Spans = std::vector<std::pair<double, double>>;

/// The parts of [from, to) in which any of the activities ran, without overlaps.
Spans covered(const std::vector<Activity>& activities, int device, double from, double to,
              bool (*counts)(Activity::Kind)) {
  Spans all;
  all.reserve(activities.size());
  for (const Activity& activity : activities) {
    if (!counts(activity.kind) || !concerns(activity, device)) continue;
    const double start = std::max(activity.start, from);
    const double end = std::min(activity.start + activity.seconds, to);
    if (end > start) all.emplace_back(start, end);
  }
  // Nearly always they are sorted: by start, as they were taken.
  if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
  Spans out;
  for (const auto& [start, end] : all) {
    if (!out.empty() && start <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.emplace_back(start, end);
  }
  return out;
}

double length(const Spans& spans) {
  double out = 0;
  for (const auto& [start, end] : spans) out += end - start;
  return out;
}

}  // namespace

ActivityRecorder::ActivityRecorder(const CuptiApi& api) : api_(api) {
  {
    Collected& to = collected();
    const std::lock_guard lock(to.mutex);
    if (to.api) throw Error(Code::invalid_argument, "the device's activities are recorded already");
    to.api = &api;
    to.activities.clear();
  }
  running_ = true;
  try {
    check(api, api.register_callbacks(request, complete));
    uint64_t nanoseconds = 0;
    check(api, api.get_timestamp(&nanoseconds));
    {
      const std::lock_guard lock(collected().mutex);
      collected().offset = steady_seconds() - static_cast<double>(nanoseconds) * 1e-9;
    }
    for (const CuptiKind kind : kKinds) check(api, api.enable(kind));
  } catch (...) {
    stop();
    throw;
  }
}

ActivityRecorder::~ActivityRecorder() {
  if (running_) stop();
}

std::vector<Activity> ActivityRecorder::taken() {
  Collected& from = collected();
  const std::lock_guard lock(from.mutex);
  std::sort(from.activities.begin(), from.activities.end(),
            [](const Activity& a, const Activity& b) { return a.start < b.start; });
  return std::exchange(from.activities, {});
}

std::vector<Activity> ActivityRecorder::take() {
  api_.flush_all(0);
  return taken();
}

std::vector<Activity> ActivityRecorder::stop() {
  for (const CuptiKind kind : kKinds) api_.disable(kind);
  api_.flush_all(0);
  running_ = false;
  {
    const std::lock_guard lock(collected().mutex);
    collected().api = nullptr;
  }
  return taken();
}

DeviceUse device_use(const std::vector<Activity>& activities, int device, double from, double to) {
  DeviceUse out;
  out.seconds = to - from;
  using Kind = Activity::Kind;
  constexpr std::pair<double DeviceUse::*, bool (*)(Kind)> reasons[] = {
      {&DeviceUse::kernels, [](Kind kind) { return kind == Kind::kernel; }},
      {&DeviceUse::copies, [](Kind kind) { return kind < Kind::wait; }},
      {&DeviceUse::synchronising, [](Kind kind) { return kind < Kind::data; }},
      {&DeviceUse::waiting_for_data, [](Kind) { return true; }},
  };
  // Each reason counts for what the ones before it have left.
  double explained = 0;
  for (const auto& [part, counts] : reasons) {
    const double all = length(covered(activities, device, from, to, counts));
    out.*part = all - explained;
    explained = all;
  }
  out.nothing_queued = out.seconds - explained;
  for (const Activity& activity : activities) {
    if (activity.start < from || activity.start >= to || activity.device != device) continue;
    if (activity.kind == Kind::to_device)
      out.to_device_bytes += static_cast<double>(activity.bytes);
    if (activity.kind == Kind::from_device)
      out.from_device_bytes += static_cast<double>(activity.bytes);
  }
  return out;
}

}  // namespace dais::cuda
