#include "jobs/executor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "http/client.h"
#include "jobs/data_folder.h"
#include "jobs/gpu_shares.h"
#include "jobs/workspace.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

std::string visible_devices(const Placement& placement, int task,
                            const std::vector<LocalDevice>& devices) {
  std::string list;
  for (const Slot& slot : placement) {
    if (slot.task != task || slot.device < 0) continue;
    const auto device = static_cast<size_t>(slot.device);
    list += (list.empty() ? "" : ",") +
            (device < devices.size() ? devices[device].visible : std::to_string(device));
  }
  return list;
}

}  // namespace

std::string tf_config(const std::vector<std::string>& addresses, int port, int task) {
  nlohmann::ordered_json config;
  auto& workers = config["cluster"]["worker"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < addresses.size(); ++i) {
    workers.push_back(addresses[i] + ":" + std::to_string(port + static_cast<int>(i)));
  }
  config["task"] = {{"type", "worker"}, {"index", task}};
  return config.dump();
}

std::vector<std::string> rank_environment(const AttemptName& name, const JobRequest& request,
                                          const Placement& placement, int task, int port,
                                          const std::vector<LocalDevice>& devices) {
  std::map<std::string, std::string> all = {
      {"PATH", default_path},
      {"HOME", home_folder()},
      {"LANG", "C.UTF-8"},
      {"RANK", std::to_string(task)},
      {"LOCAL_RANK", std::to_string(task)},
      {"WORLD_SIZE", std::to_string(request.tasks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"TF_CONFIG",
       tf_config(std::vector<std::string>(static_cast<size_t>(request.tasks), "127.0.0.1"), port,
                 task)},
      {"CUDA_VISIBLE_DEVICES", visible_devices(placement, task, devices)},
      // Numbers are those of the driver's tools, whatever is fastest.
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
      {"DAIS_JOB_ID", std::to_string(name.job)},
      {"DAIS_JOB_NAME", request.name},
      {"DAIS_ATTEMPT", std::to_string(name.number)},
  };
  // One limit for all devices of a task: that of its largest part.
  const int64_t largest = shape_of(request, 1).part(0);
  if (largest > 0 && largest < whole_gpu) {
    const int64_t percent = std::max<int64_t>(1, largest * 100 / whole_gpu);
    all["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(percent);
  }
  for (const auto& [variable, value] : request.environment) all[variable] = value;
  // Whoever shares a device does not choose how much of it.
  if (shares_device(request)) {
    all["DAIS_GPU_MEMORY"] = runtime_limits(shares_of(request, placement, task));
  }
  std::vector<std::string> out;
  for (const auto& [variable, value] : all) out.push_back(variable + "=" + value);
  return out;
}

Executor::Executor(fs::path folder) : folder_(std::move(folder)) {
  make_folder(folder_ / "jobs");
  make_folder(folder_ / "incoming");
}

fs::path Executor::attempt_folder(const AttemptName& name) const {
  return folder_ / "jobs" / std::to_string(name.job) / std::to_string(name.number);
}

fs::path Executor::log(const AttemptName& name, int task) const {
  return attempt_folder(name) / ("task" + std::to_string(task) + ".log");
}

fs::path Executor::copy_of(int64_t job) const {
  return folder_ / "jobs" / std::to_string(job) / "folder";
}

// A key is anybody's text: no part of it may act as a path.
fs::path Executor::incoming(const std::string& key) const {
  return folder_ / "incoming" /
         ("key-" + std::to_string(std::hash<std::string>()(key)) + "-" +
          http::percent_encode(key.substr(0, 32)));
}

void Executor::prepare(const std::string& key, const JobRequest& request,
                       const std::optional<Account>& owner) const {
  std::error_code error;
  // What only its owner may see is for the job to find out.
  if (!fs::is_directory(request.folder, error) && error != std::errc::permission_denied) {
    throw Error(Code::not_found, "the working folder does not exist", request.folder);
  }
  if (!request.snapshot) return;
  // What lies there is half of a copy: a job that was acknowledged has taken its own.
  fs::remove_all(incoming(key), error);
  copy_folder(request.folder, incoming(key), {}, owner);
}

void Executor::keep(const std::string& key, int64_t job) const {
  const fs::path from = incoming(key), to = copy_of(job);
  std::error_code error;
  if (!fs::exists(from, error)) return;
  if (fs::exists(to, error)) {
    fs::remove_all(from, error);  // the job was submitted again
    return;
  }
  make_folder(to.parent_path());
  struct stat status {};
  const bool of_another = stat(from.c_str(), &status) == 0 && status.st_uid != geteuid();
  if (of_another) open_way(to.parent_path());
  fs::rename(from, to, error);
  if (error) {
    throw Error(Code::unavailable, "cannot keep the copied folder: " + error.message(),
                to.string());
  }
}

void Executor::open_way(const fs::path& to) const {
  // Downwards, part by part: nothing above the data folder, however that is written, is touched.
  fs::path way = folder_;
  for (const fs::path& part : to.lexically_relative(folder_)) let_pass(way /= part);
}

std::string Executor::work_folder(const AttemptName& name, const JobRequest& request) const {
  return request.snapshot ? copy_of(name.job).string() : request.folder;
}

}  // namespace dais::jobs
