#include "jobs/slurm.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "jobs/exec_words.h"

namespace dais::jobs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto busy_pause = std::chrono::milliseconds(300);
constexpr auto idle_pause = std::chrono::seconds(5);
// Slurm's programs try for minutes when the controller is away.
constexpr auto call_limit = std::chrono::seconds(10);
constexpr size_t most_output_bytes = 256 << 20;

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, mark);) out.push_back(piece);
  return out;
}

int64_t number(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "gpu:a100:4(S:0-1),shard:8" has four.
int gpus_of(const std::string& resources) {
  int count = 0;
  for (std::string one : split(resources, ',')) {
    one = one.substr(0, one.find('('));
    const auto parts = split(one, ':');
    if (parts.size() >= 2 && parts[0] == "gpu") count += static_cast<int>(number(parts.back()));
  }
  return count;
}

// A node that fails to answer carries a mark after its state.
bool takes_jobs(const std::string& state) {
  const size_t plain = state.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  if (plain != std::string::npos) return false;
  return state == "idle" || state == "mixed" || state == "allocated" || state == "completing" ||
         state == "planned";
}

// What may pass by itself: the controller is away or busy.
bool passes(const std::string& message) {
  for (const char* sign : {"Unable to contact", "Socket timed out", "Connection refused",
                           "communication", "slow", "temporarily", "Zero Bytes"}) {
    if (message.find(sign) != std::string::npos) return true;
  }
  return message.empty();
}

}  // namespace

std::vector<SlurmNode> parse_nodes(const std::string& lines) {
  std::vector<SlurmNode> out;
  for (const std::string& line : split(lines, '\n')) {
    const auto field = split(line, '|');
    if (field.size() < 6) continue;
    const bool known =
        std::ranges::any_of(out, [&](const SlurmNode& node) { return node.name == field[0]; });
    if (known) continue;
    out.push_back({field[0], field[1], gpus_of(field[4]), number(field[2]), number(field[3]),
                   takes_jobs(field[5])});
  }
  return out;
}

bool SlurmJob::over() const {
  for (const char* alive :
       {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "SIGNALING",
        "RESIZING", "STOPPED", "REQUEUED", "REQUEUE_HOLD"}) {
    if (state == alive) return false;
  }
  return true;
}

std::map<std::string, SlurmJob> parse_jobs(const std::string& lines) {
  std::map<std::string, SlurmJob> out;
  for (const std::string& line : split(lines, '\n')) {
    const auto field = split(line, '|');
    if (field.size() < 4 || field[3].empty()) continue;
    const SlurmJob job{field[0], field[1], field[2].starts_with("launch failed")};
    const auto [at, added] = out.try_emplace(field[3], job);
    if (!added && at->second.over()) at->second = job;
  }
  return out;
}

struct Slurm::Output {
  bool succeeded = false;
  std::string text, errors;
};

namespace {

// Reads both ends until they close; false when that took too long.
bool read_all(const std::array<int, 2>& ends, std::array<std::string, 2>& texts) {
  const auto limit = Clock::now() + call_limit;
  std::array<bool, 2> open = {true, true};
  while (open[0] || open[1]) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> watched = {pollfd{open[0] ? ends[0] : -1, POLLIN, 0},
                                     pollfd{open[1] ? ends[1] : -1, POLLIN, 0}};
    poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    for (size_t i = 0; i < 2; ++i) {
      if (watched[i].revents == 0) continue;
      std::array<char, 65'536> buffer;
      const ssize_t size = read(ends[i], buffer.data(), buffer.size());
      if (size <= 0) open[i] = false;
      if (size > 0 && texts[i].size() < most_output_bytes) {
        texts[i].append(buffer.data(), static_cast<size_t>(size));
      }
    }
  }
  return true;
}

}  // namespace

Slurm::Output Slurm::call(const std::vector<std::string>& command,
                          const std::map<std::string, std::string>& environment) {
  std::array<int, 2> out, err;
  if (pipe2(out.data(), O_CLOEXEC) != 0) return {};
  if (pipe2(err.data(), O_CLOEXEC) != 0) {
    close(out[0]), close(out[1]);
    return {};
  }
  std::vector<std::string> words = command, variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, words[0].c_str(), &actions, nullptr,
                                  exec_words(words).data(), exec_words(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]), close(err[1]);
  std::array<std::string, 2> texts;
  int status = -1;
  if (failed == 0) {
    if (!read_all({out[0], err[0]}, texts)) ::kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  }
  close(out[0]), close(err[0]);
  const bool succeeded = failed == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return {succeeded, std::move(texts[0]), std::move(texts[1])};
}

Slurm::Slurm(std::string partition, std::string prefix)
    : partition_(std::move(partition)), prefix_(std::move(prefix)) {
  worker_ = std::thread([this] { work(); });
}

Slurm::~Slurm() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

std::vector<std::string> Slurm::with_partition(std::vector<std::string> command) const {
  if (!partition_.empty()) command.insert(command.begin() + 1, "--partition=" + partition_);
  return command;
}

std::vector<SlurmNode> Slurm::nodes() const {
  const Output answer = call(with_partition({"sinfo", "-h", "-N", "-o", "%N|%o|%c|%m|%G|%T"}));
  if (!answer.succeeded) {
    throw Error(Code::unavailable, "Slurm does not answer: " + answer.errors.substr(0, 300),
                "sinfo", "See that slurmctld runs and that SLURM_CONF names its configuration");
  }
  return parse_nodes(answer.text);
}

bool Slurm::has_begun(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return !error && size > 0;
}

void Slurm::keep(const std::string& uuid, Order order) {
  {
    const std::lock_guard lock(mutex_);
    Kept& kept = kept_[uuid];
    kept.order = std::move(order);
    hurry_ = true;
  }
  changed_.notify_all();
}

void Slurm::forget(const std::string& uuid) {
  const std::lock_guard lock(mutex_);
  kept_.erase(uuid);
}

void Slurm::cancel_strays() {
  const std::lock_guard lock(mutex_);
  strays_end_ = true;
}

void Slurm::signal(const std::string& uuid, int signal) {
  {
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.find(uuid);
    if (kept == kept_.end()) return;
    kept->second.signals.push_back(signal);
    kept->second.view.reached = false;
    hurry_ = true;
  }
  changed_.notify_all();
}

Slurm::View Slurm::view(const std::string& uuid) const {
  const std::lock_guard lock(mutex_);
  const auto kept = kept_.find(uuid);
  return kept == kept_.end() ? View{} : kept->second.view;
}

std::vector<SlurmNode> Slurm::latest_nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

bool Slurm::reachable() const {
  const std::lock_guard lock(mutex_);
  return reachable_;
}

void Slurm::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    hurry_ = false;
    lock.unlock();
    round();
    lock.lock();
    const auto pause = kept_.empty() ? Clock::duration(idle_pause) : Clock::duration(busy_pause);
    changed_.wait_for(lock, pause, [this] { return stopping_ || hurry_; });
  }
}

void Slurm::round() {
  bool answered = false;
  look(answered);
  if (!answered) return;
  submit_missing();
  send_signals();
  end_strays();
}

void Slurm::look(bool& answered) {
  std::vector<std::string> asked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uuid, kept] : kept_) {
      if (kept.signals.empty()) asked.push_back(uuid);
    }
  }
  const Output jobs = call({"squeue", "-h", "-t", "all", "-o", "%i|%T|%r|%k"});
  const Output nodes = call(with_partition({"sinfo", "-h", "-N", "-o", "%N|%o|%c|%m|%G|%T"}));
  answered = jobs.succeeded;
  const std::lock_guard lock(mutex_);
  reachable_ = answered;
  if (nodes.succeeded) nodes_ = parse_nodes(nodes.text);
  if (!answered) return;
  const auto listed = parse_jobs(jobs.text);
  for (auto& [uuid, kept] : kept_) {
    const auto found = listed.find(uuid);
    kept.view.job = found == listed.end() ? std::nullopt : std::optional(found->second);
    // Signals that were given meanwhile make the answer an old one.
    const bool current = kept.signals.empty() && std::ranges::count(asked, uuid) > 0;
    if (current) kept.view.reached = true;
  }
  strays_.clear();
  for (const auto& [uuid, job] : listed) {
    const bool ending = job.over() || job.state == "COMPLETING";
    if (strays_end_ && uuid.starts_with(prefix_) && !kept_.contains(uuid) && !ending) {
      strays_.push_back(job.id);
    }
  }
}

void Slurm::end_strays() {
  std::vector<std::string> strays;
  {
    const std::lock_guard lock(mutex_);
    strays.swap(strays_);
  }
  for (const std::string& id : strays) call({"scancel", id});
}

// Slurm answered and does not know them: they are new, or were lost with its state.
void Slurm::submit_missing() {
  std::map<std::string, Order> missing;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uuid, kept] : kept_) {
      const View& view = kept.view;
      if (view.job || view.cancelled || !view.refusal.empty() || !kept.signals.empty()) continue;
      if (!has_begun(kept.order.begun)) missing[uuid] = kept.order;
    }
  }
  for (const auto& [uuid, order] : missing) {
    // Requeued by Slurm it does not run again, but what a node could not start is told apart from
    // what somebody cancelled.
    std::vector<std::string> command =
        with_partition({"sbatch", "--parsable", "--requeue", "--comment=" + uuid});
    command.insert(command.end(), order.arguments.begin(), order.arguments.end());
    const Output answer = call(command, order.environment);
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.find(uuid);
    if (kept == kept_.end()) continue;
    if (answer.succeeded) {
      kept->second.view.job =
          SlurmJob{answer.text.substr(0, answer.text.find_first_of(";\n")), "PENDING"};
    } else if (!passes(answer.errors)) {
      kept->second.view.refusal = answer.errors.substr(0, 500);
    }
    hurry_ = hurry_ || answer.succeeded;
  }
}

void Slurm::send_signals() {
  struct Due {
    std::string uuid;
    std::optional<SlurmJob> job;
    std::vector<int> signals;
    std::string begun;
  };
  std::vector<Due> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [uuid, kept] : kept_) {
      if (!kept.signals.empty())
        all.push_back({uuid, kept.view.job, kept.signals, kept.order.begun});
    }
  }
  for (const Due& due : all) {
    bool sent = true, cancelled = !due.job;
    for (const int signal : due.signals) {
      if (!due.job || due.job->over()) break;
      // Before it has begun there is nothing in it that could take a signal.
      const bool whole = signal == SIGKILL || !has_begun(due.begun);
      cancelled = cancelled || whole;
      std::vector<std::string> command = {"scancel", due.job->id};
      if (!whole) command.insert(command.begin() + 1, "--signal=" + std::to_string(signal));
      sent = call(command).succeeded && sent;
    }
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.find(due.uuid);
    if (kept == kept_.end() || !sent) continue;
    auto& signals = kept->second.signals;
    signals.erase(signals.begin(),
                  signals.begin() + static_cast<std::ptrdiff_t>(due.signals.size()));
    kept->second.view.cancelled = kept->second.view.cancelled || cancelled;
    hurry_ = true;
  }
}

}  // namespace dais::jobs
