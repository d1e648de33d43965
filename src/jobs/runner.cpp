#include "jobs/runner.h"

#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/span.h"
#include "http/client.h"
#include "jobs/workspace.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

constexpr size_t processes_ready = 2;
const std::string ready_prefix = "ready-";

// A port nobody listens on now. Another process may take it before the job does; the job then fails
// to listen and is retried like any other failure.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  if (fd >= 0) close(fd);
  return port;
}

std::string name_text(const AttemptName& name) {
  return std::to_string(name.job) + "." + std::to_string(name.number);
}

std::string home_folder() {
  const passwd* user = getpwuid(getuid());
  return user ? user->pw_dir : "/";
}

std::string visible_devices(const Placement& placement, int task) {
  std::string list;
  for (const Slot& slot : placement) {
    if (slot.task != task || slot.device < 0) continue;
    list += (list.empty() ? "" : ",") + std::to_string(slot.device);
  }
  return list;
}

// NVIDIA's devices that the attempt was not given: character devices of major number 195.
std::vector<std::string> other_devices(const Placement& placement) {
  std::vector<std::string> out;
  for (int device = 0; device < max_devices; ++device) {
    const bool given = std::ranges::any_of(
        placement, [device](const Slot& slot) { return slot.device == device; });
    if (!given) out.push_back("c 195:" + std::to_string(device));
  }
  return out;
}

std::string tf_config(int tasks, int task, int port) {
  nlohmann::ordered_json config;
  auto& workers = config["cluster"]["worker"] = nlohmann::ordered_json::array();
  for (int i = 0; i < tasks; ++i) workers.push_back("127.0.0.1:" + std::to_string(port + i));
  config["task"] = {{"type", "worker"}, {"index", task}};
  return config.dump();
}

// The user's own numbers and home; what the request sets goes first.
void become_user(Launch& launch, const std::string& name) {
  const passwd* user = getpwnam(name.c_str());
  if (!user) {
    throw Error(Code::not_found, "this machine has no user '" + name + "'", {},
                "Add the user, or submit as another");
  }
  launch.user = {user->pw_uid, user->pw_gid};
  const std::string roots_home = "HOME=" + home_folder();
  for (std::string& variable : launch.environment) {
    if (variable == roots_home) variable = std::string("HOME=") + user->pw_dir;
  }
  launch.environment.push_back("USER=" + name);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(error == std::errc::no_space_on_device ? Code::exhausted : Code::unavailable,
                "cannot make a folder: " + error.message(), folder.string(),
                "Check the rights and the free space");
  }
}

}  // namespace

std::string resolve_program(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) return program;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  throw Error(Code::not_found, "no program '" + program + "' on the path", path,
              "Install it, or give its full path");
}

std::vector<std::string> rank_environment(const AttemptName& name, const JobRequest& request,
                                          const Placement& placement, int task, int port) {
  std::map<std::string, std::string> all = {
      {"PATH", default_path},
      {"HOME", home_folder()},
      {"LANG", "C.UTF-8"},
      {"RANK", std::to_string(task)},
      {"LOCAL_RANK", std::to_string(task)},
      {"WORLD_SIZE", std::to_string(request.tasks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"TF_CONFIG", tf_config(request.tasks, task, port)},
      {"CUDA_VISIBLE_DEVICES", visible_devices(placement, task)},
      // Numbers are those of the driver's tools, whatever is fastest.
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
      {"DAIS_JOB_ID", std::to_string(name.job)},
      {"DAIS_JOB_NAME", request.name},
      {"DAIS_ATTEMPT", std::to_string(name.number)},
  };
  for (const auto& [variable, value] : request.environment) all[variable] = value;
  std::vector<std::string> out;
  for (const auto& [variable, value] : all) out.push_back(variable + "=" + value);
  return out;
}

Runner::Runner(fs::path folder, bool own_users)
    : folder_(std::move(folder)),
      own_users_(own_users),
      // Two daemons of one machine must not share groups: the folder tells them apart.
      groups_("dais-" + std::to_string(std::hash<std::string>()(folder_.string()) % 1'000'000)) {
  make_folder(folder_ / "jobs");
  make_folder(folder_ / "incoming");
  groups_.remove_all(ready_prefix);
}

Runner::~Runner() {
  ready_.clear();
  groups_.remove_all(ready_prefix);
}

fs::path Runner::attempt_folder(const AttemptName& name) const {
  return folder_ / "jobs" / std::to_string(name.job) / std::to_string(name.number);
}

fs::path Runner::task_folder(const AttemptName& name, int task) const {
  return attempt_folder(name) / ("task" + std::to_string(task));
}

fs::path Runner::log(const AttemptName& name, int task) const {
  return attempt_folder(name) / ("task" + std::to_string(task) + ".log");
}

fs::path Runner::copy_of(int64_t job) const {
  return folder_ / "jobs" / std::to_string(job) / "folder";
}

// A key is anybody's text: no part of it may act as a path.
fs::path Runner::incoming(const std::string& key) const {
  return folder_ / "incoming" /
         ("key-" + std::to_string(std::hash<std::string>()(key)) + "-" +
          http::percent_encode(key.substr(0, 32)));
}

void Runner::prepare(const std::string& key, const JobRequest& request) const {
  std::error_code error;
  if (!fs::is_directory(request.folder, error)) {
    throw Error(Code::not_found, "the working folder does not exist", request.folder);
  }
  if (request.snapshot) copy_folder(request.folder, incoming(key));
}

void Runner::keep(const std::string& key, int64_t job) const {
  const fs::path from = incoming(key);
  std::error_code error;
  if (!fs::exists(from, error) || fs::exists(copy_of(job), error)) return;
  make_folder(copy_of(job).parent_path());
  fs::rename(from, copy_of(job), error);
  if (error) {
    throw Error(Code::unavailable, "cannot keep the copied folder: " + error.message(),
                copy_of(job).string());
  }
}

Launch Runner::launch_of(const AttemptName& name, const JobRequest& request,
                         const Placement& placement, int task, int port) const {
  Launch launch;
  launch.command = request.command;
  launch.environment = rank_environment(name, request, placement, task, port);
  std::string path = default_path;
  for (const std::string& variable : launch.environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  launch.folder = request.snapshot ? copy_of(name.job).string() : request.folder;
  launch.command[0] = resolve_program(request.command[0], path);
  if (launch.command[0][0] != '/') {
    launch.command[0] = (fs::path(launch.folder) / launch.command[0]).lexically_normal().string();
  }
  launch.log = log(name, task).string();
  if (own_users_) become_user(launch, request.user);
  return launch;
}

void Runner::stand_by() {
  if (!groups_.renamable()) return;
  while (ready_.size() < processes_ready) {
    // With the number of this process: what a killed daemon left may still be ending.
    const std::string name =
        ready_prefix + std::to_string(getpid()) + "-" + std::to_string(next_ready_++);
    ready_.push_back({name, Standby(groups_.create(name, {}))});
  }
}

std::optional<Runner::Ready> Runner::take_ready(const AttemptName& name,
                                                const GroupLimits& limits) {
  if (ready_.empty()) return std::nullopt;
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  if (!groups_.rename(ready.groups, name_text(name), limits)) return std::nullopt;
  return ready;
}

void Runner::start(const AttemptName& name, const JobRequest& request, const Placement& placement) {
  make_folder(attempt_folder(name));
  const GroupLimits limits{request.cpu_milli * request.tasks, request.memory_mib * request.tasks,
                           other_devices(placement)};
  std::optional<Span> span(std::in_place, "job", "groups");
  const std::optional<Ready> ready = take_ready(name, limits);
  const bool more = !ready || request.tasks > 1;
  const std::vector<std::string> procs =
      more ? groups_.create(name_text(name), limits) : std::vector<std::string>();
  span.reset();
  const int port = free_port();
  try {
    for (int task = 0; task < request.tasks; ++task) {
      Launch launch = launch_of(name, request, placement, task, port);
      launch.groups = procs;
      const std::string folder = task_folder(name, task).string();
      if (task == 0 && ready) {
        start_attempt(folder, launch, ready->standby);
      } else {
        start_attempt(folder, launch);
      }
    }
  } catch (...) {
    kill(name, request.tasks);
    throw;
  }
}

AttemptOutcome Runner::inspect(const AttemptName& name, int tasks) const {
  AttemptOutcome outcome;
  int absent = 0, running = 0, lost = 0;
  for (int task = 0; task < tasks; ++task) {
    const AttemptStatus status = inspect_attempt(task_folder(name, task).string());
    absent += status.state == AttemptState::absent;
    running += status.state == AttemptState::running;
    lost += status.state == AttemptState::lost;
    const bool failed =
        status.state == AttemptState::ended && (status.exit_code != 0 || status.signal != 0);
    if (failed && outcome.failed_task < 0) {
      outcome.failed_task = task;
      outcome.exit_code = status.exit_code;
      outcome.signal = status.signal;
    }
  }
  outcome.state = running > 0  ? AttemptState::running
                  : absent > 0 ? AttemptState::absent
                  : lost > 0   ? AttemptState::lost
                               : AttemptState::ended;
  if (outcome.state != AttemptState::running) outcome.groups = groups_.report(name_text(name));
  return outcome;
}

std::vector<ProcessId> Runner::processes(const AttemptName& name, int tasks) const {
  std::vector<ProcessId> out;
  for (int task = 0; task < tasks; ++task) {
    const AttemptStatus status = inspect_attempt(task_folder(name, task).string());
    if (status.state == AttemptState::running && status.process) out.push_back(*status.process);
  }
  return out;
}

std::vector<int> Runner::members(const AttemptName& name) const {
  return groups_.processes(name_text(name));
}

void Runner::signal(const AttemptName& name, int tasks, int signal) const {
  for (int task = 0; task < tasks; ++task) {
    signal_attempt(task_folder(name, task).string(), signal);
  }
}

void Runner::kill(const AttemptName& name, int tasks) const {
  signal(name, tasks, SIGKILL);
  groups_.kill(name_text(name));
}

void Runner::clean_up(const AttemptName& name) const { groups_.remove(name_text(name)); }

}  // namespace dais::jobs
