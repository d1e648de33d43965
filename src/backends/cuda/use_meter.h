#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/activity.h"

namespace dais::cuda {

/// What one process did with its devices in the stretch of time that it published last.
struct PublishedUse {
  struct OfDevice {
    std::string device;  ///< its UUID
    DeviceUse use;
  };
  int pid = 0;
  std::string program;
  double at = 0;               ///< seconds since 1970, when it was published
  std::string missing;         ///< why nothing is known; else `uses` holds
  std::vector<OfDevice> uses;  ///< of the devices that it has put work on
};

/// Where processes publish: DAIS_DEVICE_USE, which also is what makes them do so; empty: nowhere.
std::filesystem::path use_folder();

/// What is published in a folder by processes that live, by process. Files of the dead and what
/// cannot be read are passed over.
std::vector<PublishedUse> published_uses(const std::filesystem::path& folder);

/// While one lives, this process publishes what its device does: each period the one before the
/// last, so that what ended late is in it. Where CUPTI refuses, why it does is published once.
class UseMeter {
 public:
  /// `devices`: the UUIDs of those this process sees, in its order. Throws `unavailable` when the
  /// folder cannot be made.
  UseMeter(const Loaded<CuptiApi>& library, const std::filesystem::path& folder,
           std::vector<std::string> devices, double every_s = 1);
  ~UseMeter();
  UseMeter(const UseMeter&) = delete;

 private:
  void run(double every_s);
  void publish(const PublishedUse& use) const noexcept;

  std::filesystem::path file_;
  std::vector<std::string> devices_;
  PublishedUse mine_;
  std::unique_ptr<ActivityRecorder> recorder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dais::cuda
