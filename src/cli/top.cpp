// dais top: the machine, its devices and jobs, by a scheduler or without one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "cli/device_use.h"
#include "cli/scheduler.h"
#include "dais/devices.h"
#include "devices/use.h"
#include "jobs/api_text.h"
#include "jobs/machine.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;
using Processes = std::vector<devices::ProcessSample>;

// A value that a device does not tell is shown as a dash: it is not 0.
std::string shown(const Json& value, const char* format, double scale) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, value.get<double>() * scale);
  return text;
}

void print_cpu(const Json& cpu) {
  std::printf("CPU    %4s %% busy, memory %s of %s GiB\n",
              shown(cpu["utilisation"], "%.0f", 100).c_str(),
              shown(cpu["memory_used_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
              shown(cpu["memory_total_bytes"], "%.1f", 1.0 / (1 << 30)).c_str());
  if (cpu["group_cores"].is_number() || cpu["group_memory_limit_bytes"].is_number())
    std::printf("       its control group has %s CPUs, memory %s of %s GiB\n",
                shown(cpu["group_cores"], "%.1f", 1).c_str(),
                shown(cpu["group_memory_used_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
                shown(cpu["group_memory_limit_bytes"], "%.1f", 1.0 / (1 << 30)).c_str());
}

void print_processes(const Json& device) {
  for (const Json& one : device["processes"])
    std::printf("       process %d: %s %% busy, %s GiB\n", one["pid"].get<int>(),
                shown(one["utilisation"], "%.0f", 100).c_str(),
                shown(one["memory_bytes"], "%.2f", 1.0 / (1 << 30)).c_str());
}

void print_devices(const Json& status) {
  if (status.contains("cpu")) print_cpu(status["cpu"]);
  const std::string missing = status["devices_missing"];
  if (!missing.empty() && status["gpus"].get<int>() > 0) {
    std::printf("GPUs are not measured: %s\n", missing.c_str());
  }
  for (const Json& device : status["devices"]) {
    std::printf(
        "GPU %d  %-28.28s  %4s %% busy, memory %s of %s GiB, %s W, %s C, PCIe %s / %s MB/s\n",
        device["device"].get<int>(), device["name"].get<std::string>().c_str(),
        shown(device["utilisation"], "%.0f", 100).c_str(),
        shown(device["memory_used_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
        shown(device["memory_total_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
        shown(device["power_w"], "%.0f", 1).c_str(),
        shown(device["temperature_c"], "%.0f", 1).c_str(),
        shown(device["sent_bytes_s"], "%.0f", 1e-6).c_str(),
        shown(device["received_bytes_s"], "%.0f", 1e-6).c_str());
    std::printf(
        "       %s GiB free, %s reserved; clocks %s / %s MHz; ECC errors %s corrected, %s not; XID "
        "%s\n",
        shown(device["memory_free_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
        shown(device["memory_reserved_bytes"], "%.1f", 1.0 / (1 << 30)).c_str(),
        shown(device["core_clock_mhz"], "%.0f", 1).c_str(),
        shown(device["memory_clock_mhz"], "%.0f", 1).c_str(),
        shown(device["ecc_corrected"], "%.0f", 1).c_str(),
        shown(device["ecc_uncorrected"], "%.0f", 1).c_str(),
        shown(device["xid"], "%.0f", 1).c_str());
    if (device.contains("processes")) print_processes(device);
  }
}

// As in a scheduler's status: this machine's own devices, where there is none to ask.
Json status_of(const DeviceReading& reading) {
  Json out{{"gpus", std::max(static_cast<int>(reading.gpus.size()), jobs::this_machine().devices)},
           {"devices", Json::array()},
           {"devices_missing", reading.gpus_missing},
           {"cpu", jobs::cpu_json(reading.cpu)}};
  for (const devices::DeviceSample& sample : reading.gpus) {
    Json device = jobs::device_json(sample);
    device["processes"] = Json::array();
    for (const devices::ProcessSample& one : sample.processes.value_or(Processes()))
      device["processes"].push_back(
          {{"pid", one.pid},
           {"utilisation", one.utilisation ? Json(*one.utilisation) : Json()},
           {"memory_bytes", one.memory_bytes ? Json(*one.memory_bytes) : Json()}});
    out["devices"].push_back(std::move(device));
  }
  return out;
}

void print_local(DeviceReader& reader, bool json) {
  const DeviceReading reading = reader.read();
  const Json status = status_of(reading);
  if (json) {
    const Json all{{"status", status}, {"device_uses", device_uses(reading.processes)}};
    std::printf("%s\n", all.dump().c_str());
    return;
  }
  std::printf("no scheduler runs here (`dais up` starts one); this machine alone:\n");
  print_devices(status);
  print_device_uses(reading.processes, status);
}

void print_scheduled(const Scheduler& scheduler, const Json& status) {
  const Json jobs = scheduler.call("GET", "/v1/jobs?most=30");
  const auto processes = devices::process_uses(devices::use_folder());
  if (scheduler.json) {
    const Json all{
        {"status", status}, {"jobs", jobs["jobs"]}, {"device_uses", device_uses(processes)}};
    std::printf("%s\n", all.dump().c_str());
    return;
  }
  std::printf("%s: GPUs %g of %d free, CPUs %g of %g free, memory %lld of %lld MiB free\n",
              status["host"].get<std::string>().c_str(), status["gpus_free"].get<double>(),
              status["gpus"].get<int>(), status["cpus_free"].get<double>(),
              status["cpus"].get<double>(),
              static_cast<long long>(status["memory_free_mib"].get<int64_t>()),
              static_cast<long long>(status["memory_mib"].get<int64_t>()));
  std::printf("jobs: %d run, %d wait\n", status["jobs_running"].get<int>(),
              status["jobs_waiting"].get<int>());
  print_devices(status);
  print_device_uses(processes, status);
  for (const Json& alert : status["alerts"]) {
    std::printf("! %s\n", alert.get<std::string>().c_str());
  }
  std::printf("\n");
  print_jobs(jobs["jobs"]);
}

/// Of a scheduler that was named, or that answers; nothing where none was named and none does.
std::optional<Json> asked(const Scheduler& scheduler) {
  try {
    return scheduler.call("GET", "/v1/status");
  } catch (const Error& error) {
    if (error.code() != Code::unavailable || !scheduler.endpoint.empty()) throw;
    return std::nullopt;
  }
}

}  // namespace

void add_top(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    double every = 1;
    bool once = false;
  };
  auto* command = program.app.add_subcommand("top", "Watch the machine, its devices and jobs");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--every", arguments->every, "Seconds between looks")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--once", arguments->once, "Look once");
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais top --once");
  command->callback([arguments] {
    std::optional<DeviceReader> local;
    const bool live = !arguments->once && !arguments->scheduler.json && isatty(1);
    for (;;) {
      const auto status = asked(arguments->scheduler);
      if (!status && !local) {
        local.emplace();
        usleep(250'000);  // how busy the CPUs are is known after a while
      }
      if (live) std::printf("\033[H\033[2J");
      if (status) {
        print_scheduled(arguments->scheduler, *status);
      } else {
        print_local(*local, arguments->scheduler.json);
      }
      std::fflush(stdout);
      if (!live) return;
      usleep(static_cast<useconds_t>(arguments->every * 1e6));
    }
  });
}

}  // namespace dais::cli
