#include "backends/cuda/use_meter.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/span.h"

namespace dais::cuda {
namespace {

Activity activity_of(const HostRecord& record) {
  Activity out;
  out.start = record.start;
  out.seconds = record.seconds;
  if (record.what == HostActivity::run)
    out.device = Activity::kCpu;
  else
    out.kind = Activity::Kind::data;
  return out;
}

}  // namespace

UseMeter::Moment UseMeter::Moment::now() {
  timespec processor{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
  return {steady_seconds(),
          static_cast<double>(processor.tv_sec) + static_cast<double>(processor.tv_nsec) * 1e-9};
}

UseMeter::UseMeter(const std::filesystem::path& folder, double every_s)
    : mine_(devices::this_process()) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!std::filesystem::is_directory(folder))
    throw Error(Code::unavailable, "the folder for what devices do cannot be made", folder.string(),
                "Let DAIS_DEVICE_USE name one that can");
  file_ = devices::use_file(folder, mine_.pid);
  thread_ = std::thread([this, every_s] { run(every_s); });
}

UseMeter::~UseMeter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  std::error_code failed;
  std::filesystem::remove(file_, failed);
}

void UseMeter::watch(const Loaded<CuptiApi>& library, std::vector<std::string> devices) {
  const std::lock_guard lock(mutex_);
  devices_ = std::move(devices);
  mine_.missing = library.report.problem;
  if (!mine_.missing.empty() || recorder_) return;
  try {
    recorder_ = std::make_unique<ActivityRecorder>(library.api);
  } catch (const Error& error) {
    mine_.missing = error.problem();
  }
}

void UseMeter::run(double every_s) {
  Moment first = Moment::now(), second = first;
  bool whole = false;  // whether a period lies between the two
  std::unique_lock lock(mutex_);
  while (
      !changed_.wait_for(lock, std::chrono::duration<double>(every_s), [&] { return stopping_; })) {
    gather();
    if (whole) publish(first, second);
    first = std::exchange(second, Moment::now());
    whole = true;
  }
}

void UseMeter::gather() {
  const size_t known = pending_.size();
  for (const HostRecord& record : host_.take()) pending_.push_back(activity_of(record));
  if (recorder_) {
    const auto fresh = recorder_->take();
    pending_.insert(pending_.end(), fresh.begin(), fresh.end());
  }
  for (size_t i = known; i < pending_.size(); ++i)
    if (const int device = pending_[i].device; !name_of(device).empty()) used_.insert(device);
}

/// Empty: nobody's, or of a device that this process did not see when it began.
std::string UseMeter::name_of(int device) const {
  if (device == Activity::kCpu) return "CPU";
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) return {};
  return devices_[static_cast<size_t>(device)];
}

void UseMeter::publish(const Moment& from, const Moment& to) {
  mine_.uses.clear();
  for (const int device : used_)
    mine_.uses.push_back({name_of(device), device_use(pending_, device, from.at, to.at)});
  mine_.cores = (to.processor - from.processor) / (to.at - from.at);
  if (!used_.empty() || !mine_.missing.empty()) devices::publish(file_, mine_);
  std::erase_if(pending_, [&](const Activity& one) { return one.start + one.seconds <= to.at; });
}

}  // namespace dais::cuda
