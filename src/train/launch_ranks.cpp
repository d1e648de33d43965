#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "train/mpi_ranks.h"

namespace dais::train {
namespace {

std::atomic<pid_t> child{0};

void pass_on(int) {
  if (const pid_t to = child.load(); to > 0) ::kill(to, SIGUSR1);
}

/// A file of zeros for the ranks' counters, gone with this object.
class ProgressFile {
 public:
  explicit ProgressFile(int ranks) {
    std::string name = (std::filesystem::temp_directory_path() / "dais-ranks-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) return;
    path_ = name;
    if (::ftruncate(file, static_cast<off_t>(ranks * kProgressBytes)) != 0) path_.clear();
    ::close(file);
  }
  ~ProgressFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  ProgressFile(const ProgressFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> command_line(int ranks, const std::vector<std::string>& arguments,
                                      const std::string& progress) {
  // Ranks share cores with one another's helper threads, so no rank is bound to one. An ending rank
  // gets time to write its checkpoint.
  std::vector<std::string> out{"mpirun",
                               "--oversubscribe",
                               "--bind-to",
                               "none",
                               "--mca",
                               "mpi_yield_when_idle",
                               "1",
                               "--mca",
                               "btl_base_warn_component_unused",
                               "0",
                               "-n",
                               std::to_string(ranks)};
  if (::geteuid() == 0) out.insert(out.begin() + 1, "--allow-run-as-root");
  if (!progress.empty())
    out.insert(out.end(), {"-x", std::string(kProgressVariable) + "=" + progress});
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

int launch_ranks(int ranks, const std::vector<std::string>& arguments) {
  const ProgressFile progress(ranks);
  const auto words = command_line(ranks, arguments, progress.path());
  struct sigaction action {};
  action.sa_handler = pass_on;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  const pid_t made = ::fork();
  if (made < 0) throw Error(Code::unavailable, "no process can be started", "mpirun");
  if (made == 0) {
    ::setpgid(0, 0);  // Ctrl-C reaches the ranks through this process alone
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
    become(words);
  }
  child.store(made);
  int status = 0;
  while (::waitpid(made, &status, 0) < 0 && errno == EINTR) {
  }
  child.store(0);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == 127)
    throw Error(Code::unavailable, "mpirun is not installed", "--ranks",
                "Install the package openmpi-bin");
  return WEXITSTATUS(status);
}

}  // namespace dais::train
