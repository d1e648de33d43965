#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/command.h"
#include "http/server.h"
#include "jobs/api.h"
#include "jobs/daemon.h"
#include "jobs/data_folder.h"
#include "jobs/machine.h"

namespace dais::cli {
namespace {

struct Arguments {
  std::string folder = jobs::default_data_folder();
  std::string listen, policy = "default", certificate, key;
  int gpus = -1;
  double cpus = 0;
  std::string memory;
  double log_limit_mib = 64;
  std::string artefact_limit = "1GiB";
  int64_t processes = 4096;
  std::string nvml = "libnvidia-ml.so.1";
  std::string executor = "local", partition, patience = "2m";
  bool as_daemon = false, json = false;
};

jobs::Daemon* running = nullptr;

void stop_running(int) {
  if (running) running->stop();
}

jobs::Host machine_of(const Arguments& arguments, const std::vector<jobs::LocalDevice>& divided) {
  jobs::Host host = jobs::this_machine();
  if (!divided.empty()) host.devices = static_cast<int32_t>(divided.size());
  if (arguments.gpus >= 0) host.devices = arguments.gpus;
  if (arguments.cpus > 0) host.cpu_milli = static_cast<int64_t>(arguments.cpus * 1000);
  if (!arguments.memory.empty()) host.memory_mib = jobs::parse_mib(arguments.memory, "--memory");
  return host;
}

void listen_on(http::Server& server, const Arguments& arguments) {
  const std::string& address = arguments.listen;
  std::optional<http::TlsFiles> tls;
  if (!arguments.certificate.empty()) tls = {arguments.certificate, arguments.key};
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    throw Error(Code::invalid_argument, "--listen needs an address and a port", address,
                "For example 127.0.0.1:7070");
  }
  const std::string text = address.substr(colon + 1);
  const int port = static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
  const int bound = server.listen_tcp(address.substr(0, colon), port, tls);
  std::fprintf(stderr, "listening on %s://%s:%d (a token is needed)\n", tls ? "https" : "http",
               address.substr(0, colon).c_str(), bound);
  if (!tls && !address.starts_with("127.") && !address.starts_with("[::1]")) {
    std::fprintf(stderr, "tokens and logs cross the network unencrypted: see --tls-certificate\n");
  }
}

void tell(const Arguments& arguments, const jobs::Host& host, const std::string& socket) {
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"host", host.name},
                                         {"gpus", host.devices},
                                         {"cpus", static_cast<double>(host.cpu_milli) / 1000},
                                         {"memory_mib", host.memory_mib},
                                         {"socket", socket}};
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("dais schedules %d GPUs, %.1f CPUs and %lld MiB of %s\nsocket: %s\n", host.devices,
              static_cast<double>(host.cpu_milli) / 1000, static_cast<long long>(host.memory_mib),
              host.name.c_str(), socket.c_str());
}

void up(const Arguments& arguments) {
  const std::filesystem::path folder = std::filesystem::absolute(arguments.folder);
  jobs::make_data_folder(folder, geteuid() == 0);
  const bool slurm = arguments.executor == "slurm";
  const bool measured = !slurm && !arguments.nvml.empty();
  const auto divided =
      measured ? jobs::divided_devices(arguments.nvml) : std::vector<jobs::LocalDevice>();
  const jobs::Host host = machine_of(arguments, divided);
  jobs::Controller::Options options{folder, host, jobs::policy_named(arguments.policy),
                                    jobs::steady_now_s};
  options.log_limit_bytes = arguments.log_limit_mib * (1 << 20);
  options.processes_per_task = arguments.processes;
  options.artefacts.bytes =
      static_cast<uint64_t>(jobs::parse_mib(arguments.artefact_limit, "--artefact-limit")) << 20;
  options.nvml = slurm ? "" : arguments.nvml;
  options.devices = divided;
  options.own_users = geteuid() == 0 && !arguments.as_daemon;
  if (slurm)
    options.slurm = {arguments.partition, jobs::parse_seconds(arguments.patience, "--patience")};
  jobs::Daemon daemon(options);
  jobs::Api api(daemon);
  http::Server server([&api](const http::Request& request) { return api.answer(request); });
  const std::string socket = jobs::socket_path(folder.string());
  server.listen_unix(socket, geteuid() == 0 ? 0666 : 0600);
  if (!arguments.listen.empty()) listen_on(server, arguments);
  if (slurm) {
    std::fprintf(stderr, "jobs run through Slurm, as %s\n",
                 options.own_users ? "who submitted them" : "the user of this program");
  } else {
    tell(arguments, host, socket);
  }
  std::fflush(stdout);
  running = &daemon;
  signal(SIGTERM, stop_running);
  signal(SIGINT, stop_running);
  signal(SIGPIPE, SIG_IGN);
  daemon.run();
  server.stop();
  running = nullptr;
  std::fprintf(stderr, "stopped; jobs that run go on\n");
}

}  // namespace

void add_up(Program& program) {
  auto* command =
      program.app.add_subcommand("up", "Run the scheduler of this machine until it is stopped");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--data", arguments->folder, "Folder of everything it keeps")
      ->capture_default_str();
  command->add_option("--listen", arguments->listen, "Also serve HTTP on ADDRESS:PORT");
  auto* certificate = command->add_option("--tls-certificate", arguments->certificate,
                                          "With --listen: speak TLS with this certificate (PEM)");
  auto* key = command->add_option("--tls-key", arguments->key, "Its private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  command->add_option("--policy", arguments->policy, "fifo, priority, fair, las or default")
      ->capture_default_str();
  command->add_option("--gpus", arguments->gpus, "GPUs to give out; those of the system otherwise")
      ->check(CLI::Range(0, jobs::max_devices));
  command->add_option("--cpus", arguments->cpus, "CPUs to give out; all otherwise");
  command->add_option("--memory", arguments->memory, "Memory to give out, such as 24GiB");
  command->add_option("--log-limit", arguments->log_limit_mib, "MiB of a log before it is rotated")
      ->capture_default_str();
  command->add_option("--artefact-limit", arguments->artefact_limit, "How much is kept of one job")
      ->capture_default_str();
  command
      ->add_option("--processes", arguments->processes,
                   "Processes and threads that a task may have; 0: any number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--nvml", arguments->nvml, "Library that measures the GPUs; empty measures none")
      ->capture_default_str();
  command
      ->add_option("--executor", arguments->executor,
                   "local: this machine runs the jobs; slurm: a cluster does, the data folder and "
                   "working folders being the same on its nodes")
      ->check(CLI::IsMember({"local", "slurm"}))
      ->capture_default_str();
  command->add_option("--partition", arguments->partition, "With slurm: its partition");
  command
      ->add_option("--patience", arguments->patience,
                   "With slurm: what it has not begun after so long is tried on other nodes")
      ->capture_default_str();
  command->add_flag("--as-daemon", arguments->as_daemon,
                    "As root: run all jobs as root, not as who submitted them");
  command->add_flag("--json", arguments->json, "Tell in JSON what is scheduled");
  command->footer("Example: dais up --data /var/lib/dais --listen 127.0.0.1:7070");
  command->callback([arguments] { up(*arguments); });
}

}  // namespace dais::cli
