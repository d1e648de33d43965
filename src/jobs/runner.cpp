#include "jobs/runner.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/span.h"
#include "jobs/data_folder.h"
#include "jobs/gpu_shares.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

// As long as processes are ready, more are made only in quiet moments: while they join their
// control groups, every fork and every end of a process on the machine is held up.
constexpr size_t processes_ready = 4, fewest_ready = 2;
constexpr double quiet_s = 0.05;
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

void add(std::optional<DiskUse>& sum, const std::optional<DiskUse>& one) {
  if (!one) return;
  if (!sum) sum.emplace();
  sum->read_bytes += one->read_bytes;
  sum->written_bytes += one->written_bytes;
}

std::string name_text(const AttemptName& name) {
  return std::to_string(name.job) + "." + std::to_string(name.number);
}

// NVIDIA's devices that the attempt was not given: character devices of major number 195, and what
// gives access to the other parts of a device.
std::vector<std::string> other_devices(const Placement& placement,
                                       const std::vector<LocalDevice>& devices) {
  std::set<std::string> given, all;
  const auto file = [](int minor) { return "c 195:" + std::to_string(minor); };
  for (int minor = 0; minor < max_devices; ++minor) all.insert(file(minor));
  for (const LocalDevice& device : devices) all.insert(device.files.begin(), device.files.end());
  for (const Slot& slot : placement) {
    if (slot.device < 0) continue;
    const auto device = static_cast<size_t>(slot.device);
    if (device >= devices.size()) {
      given.insert(file(slot.device));
      continue;
    }
    given.insert(file(devices[device].minor));
    given.insert(devices[device].files.begin(), devices[device].files.end());
  }
  std::vector<std::string> out;
  std::ranges::set_difference(all, given, std::back_inserter(out));
  return out;
}

// Tried in a child, whose view of the file system ends with it.
bool can_hide_tmp(const fs::path& folder) {
  const pid_t child = fork();
  if (child == 0) _exit(hide_tmp(folder.c_str()) ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool lies_in_tmp(const std::string& folder) {
  return (folder + "/").starts_with("/tmp/") || (folder + "/").starts_with("/var/tmp/");
}

// What a job left may be much: another program removes it, and nobody waits.
void remove_apart(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    if (fork() == 0) {
      execlp("rm", "rm", "-rf", "--one-file-system", "--", folder.c_str(), nullptr);
    }
    _exit(0);
  }
  if (between > 0) waitpid(between, nullptr, 0);
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

Runner::Runner(fs::path folder, bool own_users, int64_t processes_per_task,
               std::vector<LocalDevice> devices)
    : Executor(std::move(folder)),
      own_users_(own_users),
      own_tmp_(own_users && can_hide_tmp(this->folder())),
      processes_per_task_(processes_per_task),
      devices_(std::move(devices)),
      // Two daemons of one machine must not share groups: the folder tells them apart.
      groups_("dais-" +
              std::to_string(std::hash<std::string>()(this->folder().string()) % 1'000'000)) {
  groups_.remove_all(ready_prefix);
}

Runner::~Runner() {
  ready_.clear();
  for (const std::string& name : over_) groups_.remove(name);
  groups_.remove_all(ready_prefix);
  groups_.dissolve();
}

fs::path Runner::task_folder(const AttemptName& name, int task) const {
  return attempt_folder(name) / ("task" + std::to_string(task));
}

Launch Runner::launch_of(const AttemptName& name, const JobRequest& request,
                         const Placement& placement, int task, int port) const {
  Launch launch;
  launch.command = request.command;
  launch.environment = rank_environment(name, request, placement, task, port, devices_);
  std::string path = default_path;
  for (const std::string& variable : launch.environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  launch.folder = work_folder(name, request);
  launch.command[0] = resolve_program(request.command[0], path);
  if (launch.command[0][0] != '/') {
    launch.command[0] = (fs::path(launch.folder) / launch.command[0]).lexically_normal().string();
  }
  launch.log = log(name, task).string();
  if (own_users_) {
    launch.user = account_of(request.user);
    set_user(launch.environment, request.user, *launch.user);
  }
  if (shares_device(request)) {
    const std::string pipe = mps_folder(request);
    const std::string limits = mps_limits(shares_of(request, placement, task), memory_mib_);
    if (!pipe.empty()) launch.environment.push_back("CUDA_MPS_PIPE_DIRECTORY=" + pipe);
    if (!pipe.empty() && !limits.empty()) {
      launch.environment.push_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" + limits);
    }
  }
  if (own_tmp_ && !lies_in_tmp(launch.folder)) launch.tmp = tmp_folder(name).string();
  return launch;
}

fs::path Runner::tmp_folder(const AttemptName& name) const { return attempt_folder(name) / "tmp"; }

std::vector<std::string> Runner::walls() const {
  std::vector<std::string> out = groups_.walls();
  if (own_tmp_) out.emplace_back("tmp");
  return out;
}

std::vector<std::string> Runner::walls_missing() const {
  std::vector<std::string> out = groups_.missing();
  if (!own_users_) {
    out.emplace_back("tmp: jobs run as one user and share /tmp");
  } else if (!own_tmp_) {
    out.emplace_back("tmp: the system gives no mount namespace");
  }
  return out;
}

double Runner::stand_by_in_s() const {
  if (!groups_.renamable()) return over_.empty() ? Executor::stand_by_in_s() : quiet_s;
  return ready_.size() < fewest_ready ? 0 : quiet_s;
}

void Runner::stand_by() {
  std::erase_if(over_, [this](const std::string& name) { return groups_.remove(name); });
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
  if (own_tmp_) {
    make_folder(tmp_folder(name));
    fs::permissions(tmp_folder(name), fs::perms::all | fs::perms::sticky_bit);
  }
  const GroupLimits limits{request.cpu_milli * request.tasks, request.memory_mib * request.tasks,
                           other_devices(placement, devices_), processes_per_task_ * request.tasks};
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
    add(outcome.disk, status.disk);
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

// The system denies it whole devices that are not its own. A part of one is an agreement that only
// dais itself is known to keep: what MPS limits is each process, and any other program may start
// more of them, or shed the variables that limit it.
std::string Runner::wall(const JobRequest& request, const Placement& placement) const {
  if (!shares_device(request)) {
    if (!groups_.holds("devices")) return "none";
    return request.gpu_milli > 0 ? device_wall(placement) : "driver";
  }
  const auto path = request.environment.find("PATH");
  try {
    const std::string program = resolve_program(
        request.command[0], path == request.environment.end() ? default_path : path->second);
    if (!runs_this_program(program, request)) return "none";
  } catch (const Error&) {
    return "none";
  }
  return mps_folder(request).empty() ? "runtime" : "driver";
}

// Of whole devices, each the job's alone; of all it may get where it has no place yet. Parts that
// MIG made are kept apart by the hardware, if nobody else may open them.
std::string Runner::device_wall(const Placement& placement) const {
  bool parts = !devices_.empty(), open = false;
  const auto look = [&](const LocalDevice& device) {
    parts = parts && device.part;
    open = open || (device.part && device.files.empty());
  };
  if (placement.empty()) std::ranges::for_each(devices_, look);
  for (const Slot& slot : placement) {
    const bool named = slot.device >= 0 && static_cast<size_t>(slot.device) < devices_.size();
    look(named ? devices_[static_cast<size_t>(slot.device)] : LocalDevice());
  }
  return open ? "none" : parts ? "hardware" : "driver";
}

// Where the job will find the pipe of MPS: not in a /tmp of its own.
std::string Runner::mps_folder(const JobRequest& request) const {
  std::string folder = mps_pipe_folder();
  const bool own_tmp = own_tmp_ && !lies_in_tmp(request.folder);
  return own_tmp && lies_in_tmp(folder) ? "" : folder;
}

std::optional<double> Runner::age_s(const AttemptName& name, int tasks) const {
  const std::vector<ProcessId> all = processes(name, tasks);
  return all.empty() ? std::nullopt : std::optional(jobs::age_s(all[0]));
}

GroupReport Runner::groups(const AttemptName& name) const {
  return groups_.report(name_text(name));
}

// Of the processes that run and, where they have ended, of those who waited for them: the shims
// last.
std::optional<DiskUse> Runner::disk(const AttemptName& name, int tasks) const {
  std::set<pid_t> all;
  for (const int pid : members(name)) all.insert(pid);
  for (const ProcessId& first : processes(name, tasks)) {
    all.insert(first.pid);
    if (const pid_t shim = parent_of(first.pid)) all.insert(shim);
  }
  std::optional<DiskUse> sum;
  for (const pid_t pid : all) add(sum, disk_use(pid));
  return sum;
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

void Runner::signal(const AttemptName& name, int tasks, int signal) {
  for (int task = 0; task < tasks; ++task) {
    signal_attempt(task_folder(name, task).string(), signal);
  }
}

void Runner::kill(const AttemptName& name, int tasks) {
  signal(name, tasks, SIGKILL);
  groups_.kill(name_text(name));
}

// Removing takes as long as somebody else joins a group: that is not to hold up who comes next.
void Runner::clean_up(const AttemptName& name) {
  over_.push_back(name_text(name));
  if (own_tmp_) remove_apart(tmp_folder(name));
}

void Runner::all_adopted(const std::vector<AttemptName>& active) {
  std::set<std::string> kept;
  for (const AttemptName& name : active) kept.insert(name_text(name));
  for (const std::string& name : groups_.names()) {
    if (!kept.contains(name)) groups_.remove(name);
  }
}

}  // namespace dais::jobs
