// Where artefacts lie: `keeping/JOB` while they are promised or copied, `jobs/JOB/artefacts` once
// all of them are there. In both, `files` and `list.json`.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/artefacts.h"
#include "jobs/data_folder.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void write_list(const fs::path& file, const Artefacts& artefacts) {
  Json json = {{"files", Json::array()}, {"left_out", Json::array()}};
  for (const KeptFile& one : artefacts.files) {
    json["files"].push_back({{"path", one.path}, {"bytes", one.bytes}});
  }
  for (const LeftOut& one : artefacts.left_out) {
    json["left_out"].push_back({{"path", one.path}, {"why", one.why}});
  }
  std::ofstream out(file, std::ios::binary);
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!out.flush()) throw Error(Code::exhausted, "cannot write the list of artefacts");
}

Artefacts read_list(const fs::path& file) {
  Artefacts out;
  try {
    std::ifstream in(file, std::ios::binary);
    const Json json = Json::parse(in);
    for (const Json& one : json.at("files")) {
      out.files.push_back({one.at("path"), one.at("bytes")});
    }
    for (const Json& one : json.at("left_out")) {
      out.left_out.push_back({one.at("path"), one.at("why")});
    }
  } catch (const Json::exception&) {
    out.files.clear();
    out.left_out = {{"", "the list of what was kept cannot be read"}};
  }
  out.state = Artefacts::State::kept;
  return out;
}

}  // namespace

ArtefactKeeper::ArtefactKeeper(fs::path folder, const ArtefactLimits& limits)
    : folder_(std::move(folder)), limits_(limits) {}

fs::path ArtefactKeeper::promise_folder(int64_t job) const {
  return folder_ / "keeping" / std::to_string(job);
}

fs::path ArtefactKeeper::kept_folder(int64_t job) const {
  return folder_ / "jobs" / std::to_string(job) / "artefacts";
}

bool ArtefactKeeper::promise(int64_t job) const {
  try {
    make_folder(promise_folder(job));
  } catch (const Error&) {
    return false;
  }
  return true;
}

void ArtefactKeeper::forget(int64_t job) const {
  std::error_code ignored;
  fs::remove_all(promise_folder(job), ignored);
}

std::vector<int64_t> ArtefactKeeper::promised() const {
  std::vector<int64_t> out;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder_ / "keeping", error)) {
    const std::string name = item.path().filename();
    int64_t job = 0;
    const auto result = std::from_chars(name.data(), name.data() + name.size(), job);
    if (result.ec == std::errc() && result.ptr == name.data() + name.size()) out.push_back(job);
  }
  std::ranges::sort(out);
  return out;
}

// In a process of its own, which holds the lock of the promise until it ends.
void ArtefactKeeper::copy(const Order& order, int lock) const {
  const fs::path folder = promise_folder(order.job);
  fs::remove_all(folder / "files");
  fs::create_directory(folder / "files");
  Artefacts kept;
  try {
    kept = copy_artefacts(order.from, order.patterns, folder / "files", limits_, order.reader);
  } catch (const Error& error) {
    // All or none: half of a result is not taken for one.
    fs::remove_all(folder / "files");
    fs::create_directory(folder / "files");
    kept.left_out.push_back({"", error.problem()});
  }
  write_list(folder / "list.json", kept);
  if (syncfs(lock) != 0) throw Error(Code::exhausted, "cannot write the artefacts");
  fs::rename(folder, kept_folder(order.job));
}

void ArtefactKeeper::keep(const Order& order) const {
  const pid_t between = fork();
  if (between < 0) return;  // the next daemon finds the promise
  if (between > 0) {
    waitpid(between, nullptr, 0);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  for (const int number : {SIGTERM, SIGINT}) signal(number, SIG_DFL);
  const sched_param usual{};
  sched_setscheduler(0, SCHED_OTHER, &usual);
  // What the daemon has open, its sockets and locks among them, is not to live on here.
  close_range(3, ~0U, 0);
  const int lock = ::open(promise_folder(order.job).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) _exit(0);
  if (order.reader && setgroups(order.reader->groups.size(), order.reader->groups.data()) != 0) {
    _exit(1);
  }
  try {
    copy(order, lock);
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);
}

Artefacts ArtefactKeeper::read(int64_t job) const {
  // In the order in which they come and go: what moves in between is found.
  std::error_code error;
  const bool promised = fs::exists(promise_folder(job), error);
  const fs::path list = kept_folder(job) / "list.json";
  if (fs::exists(list, error)) return read_list(list);
  Artefacts out;
  if (promised) out.state = Artefacts::State::keeping;
  return out;
}

int ArtefactKeeper::open(int64_t job, const std::string& path) const {
  const Artefacts all = read(job);
  const auto found = std::ranges::find(all.files, path, &KeptFile::path);
  if (found == all.files.end()) {
    throw Error(Code::not_found, "no such artefact", path,
                "`dais artefacts " + std::to_string(job) + "` lists them");
  }
  Descriptor at(::open((kept_folder(job) / "files").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t begin = 0; begin <= path.size() && at.get() >= 0;) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    const int kind = end < path.size() ? O_DIRECTORY : O_NONBLOCK;
    at = Descriptor(::openat(at.get(), part.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | kind));
    begin = end + 1;
  }
  if (at.get() < 0) throw Error(Code::unavailable, "the artefact cannot be read", path);
  return at.release();
}

}  // namespace dais::jobs
