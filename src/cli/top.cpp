// dais top: the machine, its devices and jobs, by a scheduler or without one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "cli/device_use.h"
#include "cli/scheduler.h"
#include "devices/cpu.h"
#include "devices/nvml.h"
#include "jobs/api_text.h"
#include "jobs/machine.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;

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
  }
}

// What lies on this side of a scheduler: this machine's own devices, where there is none to ask.
class LocalDevices {
 public:
  LocalDevices() {
    try {
      nvml_ = std::make_unique<devices::Nvml>();
    } catch (const Error& error) {
      missing_ = error.problem();
    }
    if (nvml_) count_ = nvml_->devices();
  }
  /// As in a scheduler's status.
  Json status() {
    Json out{{"gpus", std::max(count_, jobs::this_machine().devices)},
             {"devices", Json::array()},
             {"devices_missing", missing_},
             {"cpu", jobs::cpu_json(cpu_.sample())}};
    for (int device = 0; device < count_; ++device) try {
        out["devices"].push_back(jobs::device_json(nvml_->sample(device)));
      } catch (const Error& error) {
        out["devices_missing"] = "GPU " + std::to_string(device) + ": " + error.problem();
      }
    return out;
  }

 private:
  devices::CpuMeter cpu_{"", 0.2};
  std::unique_ptr<devices::Nvml> nvml_;
  std::string missing_;
  int count_ = 0;
};

void print_local(LocalDevices& devices, bool json) {
  const Json status = devices.status();
  if (json) {
    std::printf("%s\n", Json{{"status", status}, {"device_uses", device_uses()}}.dump().c_str());
    return;
  }
  std::printf("no scheduler runs here (`dais up` starts one); this machine alone:\n");
  print_devices(status);
  print_device_uses(status);
}

void print_scheduled(const Scheduler& scheduler, const Json& status) {
  const Json jobs = scheduler.call("GET", "/v1/jobs?most=30");
  if (scheduler.json) {
    const Json all{{"status", status}, {"jobs", jobs["jobs"]}, {"device_uses", device_uses()}};
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
  print_device_uses(status);
  for (const Json& alert : status["alerts"]) {
    std::printf("! %s\n", alert.get<std::string>().c_str());
  }
  std::printf("\n");
  print_jobs(jobs["jobs"]);
}

/// Of a scheduler that was named, or that answers; nothing where none was named and none does.
std::optional<Json> status_of(const Scheduler& scheduler) {
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
    std::unique_ptr<LocalDevices> local;
    const bool live = !arguments->once && !arguments->scheduler.json && isatty(1);
    for (;;) {
      const auto status = status_of(arguments->scheduler);
      if (!status && !local) {
        local = std::make_unique<LocalDevices>();
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
