#include "jobs/slurm_executor.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "jobs/data_folder.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr size_t identity_digits = 13;  // six bytes and a dash
constexpr int first_port = 20'000, ports = 20'000;

constexpr size_t most_srun_log = 1 << 20, most_line = 1 << 10;

// The beginning, however much a job wrote into it.
std::string read_text(const fs::path& path, size_t most) {
  std::string out(most, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(file.gcount()));
  return out;
}

[[noreturn]] void fail(const fs::path& path) {
  const int error = errno;
  throw Error(error == ENOSPC || error == EDQUOT ? Code::exhausted : Code::unavailable,
              std::string("cannot write the files of an attempt: ") + std::strerror(error),
              path.string(), "Check the free space and the rights of the data folder");
}

// A file for the owner, which stays as it is where it is there already. Empty ones get the text.
void give_file(const fs::path& path, const std::string& text, const std::optional<Account>& owner) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) fail(path);
  if (owner && fchown(file.get(), owner->user, owner->group) != 0) fail(path);
  if (status.st_size > 0 || text.empty()) return;
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail(path);
}

// Never half of it, nor anything else than the text, whoever reads it meanwhile.
void give_text(const fs::path& path, const std::string& text, const std::optional<Account>& owner) {
  const fs::path part = path.string() + ".part";
  unlink(part.c_str());
  give_file(part, text, owner);
  if (rename(part.c_str(), path.c_str()) != 0) fail(path);
}

bool lock_held(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

// Variables that differ from rank to rank, or that Slurm sets.
bool set_by_rank(const std::string& variable) {
  for (const char* name : {"RANK=", "LOCAL_RANK=", "TF_CONFIG=", "MASTER_ADDR="}) {
    if (variable.starts_with(name)) return true;
  }
  return variable == "CUDA_VISIBLE_DEVICES=";
}

// The host of each task.
std::vector<HostId> hosts_of_tasks(const Placement& placement) {
  std::map<int, HostId> by_task;
  for (const Slot& slot : placement) by_task[slot.task] = slot.host;
  std::vector<HostId> out;
  for (const auto& [task, host] : by_task) out.push_back(host);
  return out;
}

using Digest = std::array<unsigned char, EVP_MAX_MD_SIZE>;

Digest digest_of(const std::string& text) {
  Digest digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(Code::internal, "no SHA-256");
  }
  return digest;
}

// How Slurm ended a job that left no status, where that is not for something the job did. One that
// completed was begun a second time and turned away: Slurm had lost the first.
bool fault_of_nodes(const SlurmJob& job) {
  for (const char* state : {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "COMPLETED"}) {
    if (job.state == state) return true;
  }
  return job.launch_failed;
}

std::string ending(const SlurmJob& job) {
  return job.launch_failed ? "Slurm could not start it on its nodes"
                           : "Slurm ended it: " + job.state;
}

}  // namespace

std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::optional<FailedTask> first_failure(const std::string& srun_log) {
  static const std::regex exited(R"(tasks? (\d{1,6})[^:]*: Exited with exit code (\d{1,6}))");
  static const std::regex killed(
      R"(tasks? (\d{1,6})[^:]*: (Killed|Terminated|Segmentation fault|Aborted))");
  std::istringstream lines(srun_log);
  for (std::string line; std::getline(lines, line);) {
    // The log is the job's to write: such a line would exhaust the stack.
    if (line.size() > most_line) continue;
    std::smatch match;
    if (std::regex_search(line, match, exited)) {
      return FailedTask{std::stoi(match[1]), std::stoi(match[2]), 0};
    }
    if (std::regex_search(line, match, killed)) {
      const std::string how = match[2];
      const int signal = how == "Killed"       ? SIGKILL
                         : how == "Terminated" ? SIGTERM
                         : how == "Aborted"    ? SIGABRT
                                               : SIGSEGV;
      return FailedTask{std::stoi(match[1]), 0, signal};
    }
  }
  return std::nullopt;
}

SlurmExecutor::SlurmExecutor(fs::path folder, const Options& options, std::string identity,
                             bool own_users)
    : Executor(std::move(folder)),
      options_(options),
      identity_(std::move(identity)),
      own_users_(own_users),
      slurm_(options.partition, uuid({}).substr(0, identity_digits)) {
  nodes_ = slurm_.nodes();
  if (nodes_.empty()) {
    throw Error(Code::not_found, "Slurm has no nodes", options.partition,
                "`sinfo` lists the partitions and their nodes");
  }
}

std::vector<Host> SlurmExecutor::hosts(const Host&) const {
  std::vector<Host> out;
  for (const SlurmNode& node : nodes_) {
    Host host;
    host.name = node.name;
    host.devices = std::min(node.gpus, max_devices);
    host.cpu_milli = node.cpus * 1000;
    host.memory_mib = node.memory_mib;
    out.push_back(host);
  }
  return out;
}

std::vector<bool> SlurmExecutor::open_hosts() const {
  const std::vector<SlurmNode> latest = slurm_.latest_nodes();
  if (latest.empty()) return {};
  std::vector<bool> out;
  for (const SlurmNode& node : nodes_) {
    const auto now = std::ranges::find(latest, node.name, &SlurmNode::name);
    out.push_back(now != latest.end() && now->up);
  }
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [host, until] : left_alone_) out[host] = out[host] && until <= now;
  return out;
}

void SlurmExecutor::leave_alone(const Placement& placement) {
  const auto pause = std::chrono::duration<double>(options_.patience_s);
  for (const Slot& slot : placement) {
    left_alone_[slot.host] = std::chrono::steady_clock::now() +
                             std::chrono::duration_cast<std::chrono::steady_clock::duration>(pause);
  }
}

std::vector<std::string> SlurmExecutor::problems(const JobRequest& request) const {
  std::vector<std::string> out;
  if (shares_device(request)) {
    out.emplace_back("gpus: Slurm gives whole GPUs only, for its shards keep nobody apart");
  }
  if (request.cpu_milli % 1000 != 0 || request.cpu_milli == 0) {
    out.emplace_back("cpus: Slurm gives whole CPUs only, at least one a task");
  }
  return out;
}

std::vector<std::string> SlurmExecutor::walls_missing() const {
  std::vector<std::string> out = {"all: what keeps jobs apart is up to Slurm's configuration"};
  if (!slurm_.reachable()) out.emplace_back("Slurm does not answer now");
  return out;
}

// A name-based UUID: the same attempt has the same whoever asks; it begins with what all attempts
// of this scheduler have in common.
std::string SlurmExecutor::uuid(const AttemptName& name) const {
  Digest digest =
      digest_of(identity_ + "/" + std::to_string(name.job) + "/" + std::to_string(name.number));
  const Digest common = digest_of(identity_);
  std::copy_n(common.begin(), 6, digest.begin());
  digest[6] = static_cast<unsigned char>((digest[6] & 0x0f) | 0x80);
  digest[8] = static_cast<unsigned char>((digest[8] & 0x3f) | 0x80);
  std::string out;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += "0123456789abcdef"[digest[static_cast<size_t>(i)] >> 4];
    out += "0123456789abcdef"[digest[static_cast<size_t>(i)] & 15];
  }
  return out;
}

std::string SlurmExecutor::batch_script(const AttemptName& name, const JobRequest& request,
                                        const std::optional<Account>& owner, int port) const {
  const std::string folder = attempt_folder(name).string();
  std::ostringstream out;
  out << "#!/bin/sh\n"
      << "cd " << shell_word(folder)
      << " || exit 1\n"
      // A job that Slurm lost and that was submitted again may come twice: once is enough.
      << "exec 9>>lock\n"
      << "flock -n 9 || exit 0\n"
      << "[ ! -s begun ] && echo 1 >begun || exit 0\n"
      << "unset SLURM_EXPORT_ENV\n";
  std::vector<std::string> variables = rank_environment(name, request, {}, 0, port);
  if (owner) set_user(variables, request.user, *owner);
  for (const std::string& variable : variables) {
    if (set_by_rank(variable)) continue;
    const size_t equals = variable.find('=');
    out << "export " << variable.substr(0, equals) << "=" << shell_word(variable.substr(equals + 1))
        << "\n";
  }
  // Slurm's own programs, whatever PATH the job has.
  out << "export SLURM_HOSTFILE=" << shell_word(folder + "/hosts") << "\n"
      << "PATH=\"$PATH:/usr/bin:/usr/sbin\" srun --kill-on-bad-exit=1 --unbuffered"
      << " --distribution=arbitrary --open-mode=append --chdir="
      << shell_word(work_folder(name, request))
      << " --output=" << shell_word(folder + "/task%t.log") << " /bin/sh "
      << shell_word(folder + "/rank") << " </dev/null 2>>srun.log 9>&-\n"
      << "code=$?\n"
      // srun needs the controller for a moment: that it was away is not the job's failure.
      << "if [ $code != 0 ] && [ ! -s launched ]; then echo unlaunched 1<>status; exit 0; fi\n"
      << "echo \"ended $code\" 1<>status\n";
  return out.str();
}

std::string SlurmExecutor::rank_script(const AttemptName& name, const JobRequest& request,
                                       const std::vector<std::string>& addresses, int port) const {
  std::string config = tf_config(addresses, port, 0);
  const size_t index = config.rfind('0');
  std::ostringstream out;
  out << "echo 1 >>" << shell_word((attempt_folder(name) / "launched").string()) << "\n"
      << "export RANK=\"$SLURM_PROCID\" LOCAL_RANK=\"$SLURM_LOCALID\"\n"
      << "export MASTER_ADDR=" << shell_word(addresses[0]) << "\n"
      << "export TF_CONFIG=" << shell_word(config.substr(0, index)) << "\"$SLURM_PROCID\""
      << shell_word(config.substr(index + 1)) << "\n";
  if (request.gpu_milli == 0) out << "export CUDA_VISIBLE_DEVICES=\n";
  out << "exec";
  for (const std::string& word : request.command) out << " " << shell_word(word);
  out << "\n";
  return out.str();
}

// Whatever the attempt will write into is made here; its owner may pass, and make nothing.
void SlurmExecutor::lay_out(const AttemptName& name, const JobRequest& request,
                            const std::optional<Account>& owner, int port,
                            const std::vector<HostId>& hosts) const {
  const fs::path folder = attempt_folder(name);
  make_folder(folder);
  if (owner) open_way(folder);
  std::vector<std::string> addresses;
  std::string host_file;
  for (const HostId host : hosts) {
    const SlurmNode& node = nodes_.at(host);
    addresses.push_back(node.address);
    host_file += node.name + "\n";
  }
  for (const char* file : {"begun", "lock", "launched", "srun.log", "batch.log"}) {
    give_file(folder / file, "", owner);
  }
  give_file(folder / "status", std::string(status_bytes - 1, ' ') + "\n", owner);
  for (int task = 0; task < request.tasks; ++task) give_file(log(name, task), "", owner);
  give_text(folder / "hosts", host_file, owner);
  give_text(folder / "rank", rank_script(name, request, addresses, port), owner);
  give_text(folder / "batch", batch_script(name, request, owner, port), owner);
}

void SlurmExecutor::start(const AttemptName& name, const JobRequest& request,
                          const Placement& placement) {
  const fs::path folder = attempt_folder(name);
  const std::string id = uuid(name);
  const int port = first_port + static_cast<int>(std::hash<std::string>()(id) % ports);
  std::optional<Account> owner;
  if (own_users_) owner = account_of(request.user);
  lay_out(name, request, owner, port, hosts_of_tasks(placement));
  const int64_t cpus = std::max<int64_t>(1, request.cpu_milli / 1000);
  Slurm::Order order;
  order.arguments = {"--job-name=" + ("dais-" + std::to_string(name.job)),
                     "--ntasks=" + std::to_string(request.tasks),
                     "--cpus-per-task=" + std::to_string(cpus),
                     "--distribution=arbitrary",
                     "--export=NONE",
                     "--open-mode=append",
                     "--output=" + (folder / "batch.log").string(),
                     "--chdir=/"};
  if (owner) {
    order.arguments.push_back("--uid=" + std::to_string(owner->user));
    order.arguments.push_back("--gid=" + std::to_string(owner->group));
  }
  if (request.memory_mib > 0) {
    order.arguments.push_back(
        "--mem-per-cpu=" + std::to_string((request.memory_mib + cpus - 1) / cpus) + "M");
  }
  if (request.gpu_milli > 0) {
    order.arguments.push_back("--gpus-per-task=" + std::to_string(request.gpu_milli / whole_gpu));
  }
  order.arguments.push_back((folder / "batch").string());
  // The node of each task, and with them how many there are: versions differ in what else they take
  // beside it.
  order.environment = {{"SLURM_HOSTFILE", (folder / "hosts").string()}};
  order.begun = (folder / "begun").string();
  slurm_.keep(id, std::move(order));
}

AttemptOutcome SlurmExecutor::inspect(const AttemptName& name, int tasks) const {
  AttemptOutcome outcome;
  const fs::path folder = attempt_folder(name);
  // Slurm first: what it says is over has written its status before.
  const Slurm::View slurm = slurm_.view(uuid(name));
  const std::string status = read_text(folder / "status", status_bytes);
  const bool begun = Slurm::has_begun(folder / "begun");
  if (status.starts_with("ended ")) {
    outcome.state = AttemptState::ended;
    const auto code =
        static_cast<int>(std::clamp(std::strtol(status.c_str() + 6, nullptr, 10), 0L, 255L));
    if (code == 0) return outcome;
    const auto failure = first_failure(read_text(folder / "srun.log", most_srun_log));
    outcome.failed_task = failure ? std::min(failure->task, tasks - 1) : 0;
    outcome.exit_code = failure ? failure->exit_code : code;
    outcome.signal = failure ? failure->signal : 0;
    return outcome;
  }
  if (status.starts_with("unlaunched")) {
    outcome.state = AttemptState::lost;
    outcome.note = "Slurm could not start its ranks";
    outcome.blameless = true;
    return outcome;
  }
  const bool ended = slurm.job && (slurm.job->over() || slurm.job->launch_failed);
  const bool over = slurm.reached && (!slurm.job || ended);
  if (begun) {
    // Who holds the lock of a job that was killed does so to hold its place.
    const bool gone = over && (slurm.cancelled || !lock_held(folder / "lock"));
    outcome.state = gone ? AttemptState::lost : AttemptState::running;
  } else if (!slurm.refusal.empty()) {
    outcome.state = AttemptState::lost;
    outcome.note = "Slurm refused it: " + slurm.refusal;
  } else if (slurm.reached && (ended || (slurm.cancelled && over))) {
    outcome.state = AttemptState::lost;
  } else {
    std::error_code error;
    outcome.state =
        fs::exists(folder / "batch", error) ? AttemptState::queued : AttemptState::absent;
  }
  if (outcome.state == AttemptState::lost && outcome.note.empty()) {
    outcome.note = slurm.job ? ending(*slurm.job) : "Slurm lost it";
    outcome.blameless = !slurm.job || fault_of_nodes(*slurm.job);
  }
  return outcome;
}

void SlurmExecutor::signal(const AttemptName& name, int, int signal) {
  slurm_.signal(uuid(name), signal);
}

void SlurmExecutor::kill(const AttemptName& name, int) { slurm_.signal(uuid(name), SIGKILL); }

void SlurmExecutor::clean_up(const AttemptName& name) { slurm_.forget(uuid(name)); }

}  // namespace dais::jobs
