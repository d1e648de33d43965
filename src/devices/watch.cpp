#include "devices/watch.h"

#include <chrono>

#include "base/error.h"

namespace dais::devices {

Watch::Watch(std::string library, double every_s)
    : library_(std::move(library)), every_s_(every_s) {
  if (library_.empty()) {
    reading_.missing = "no library was asked for";
    return;
  }
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Watch::Reading Watch::latest() const {
  const std::lock_guard lock(mutex_);
  return reading_;
}

void Watch::read(const Nvml& nvml) {
  std::vector<DeviceSample> devices;
  for (int device = 0; device < nvml.devices(); ++device) {
    try {
      devices.push_back(nvml.sample(device));
    } catch (const Error& error) {
      DeviceSample silent;
      silent.index = device;
      silent.missing.push_back(error.problem());
      devices.push_back(std::move(silent));
    }
  }
  const std::lock_guard lock(mutex_);
  ++reading_.number;
  reading_.devices = std::move(devices);
}

void Watch::run() {
  try {
    const Nvml nvml(library_);
    while (true) {
      read(nvml);
      std::unique_lock lock(mutex_);
      const auto pause = std::chrono::duration<double>(every_s_);
      if (changed_.wait_for(lock, pause, [this] { return stopping_; })) return;
    }
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    reading_.missing = error.problem();
    reading_.devices.clear();
  }
}

}  // namespace dais::devices
