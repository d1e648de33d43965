// What was used: the report, the history of the devices, and the text for Prometheus.
#include <algorithm>

#include "base/error.h"
#include "jobs/api.h"
#include "jobs/api_text.h"

namespace dais::jobs {
namespace {

template <typename Value>
Json maybe(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json sum_json(const UsageSum& sum) {
  Json json;
  json["project"] = sum.project;
  json["attempts"] = sum.attempts;
  json["gpu_hours"] = sum.held_s / 3600;
  json["kernel_hours"] = sum.kernel_s / 3600;
  json["idle_hours"] = sum.idle_s / 3600;
  json["unknown_hours"] = sum.unknown_s / 3600;
  json["failed_hours"] = sum.failed_s / 3600;
  json["cpu_hours"] = sum.cpu_s ? Json(*sum.cpu_s / 3600) : Json();
  json["read_bytes"] = maybe(sum.read_bytes);
  json["written_bytes"] = maybe(sum.written_bytes);
  json["energy_kwh"] = sum.energy_j ? Json(*sum.energy_j / 3.6e6) : Json();
  return json;
}

void add(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

// One sum a project, over all its days.
std::vector<UsageSum> by_project(const std::vector<UsageSum>& days) {
  std::vector<UsageSum> out;
  for (const UsageSum& day : days) {
    if (out.empty() || out.back().project != day.project) out.push_back({day.project});
    UsageSum& sum = out.back();
    sum.attempts += day.attempts;
    sum.held_s += day.held_s;
    sum.kernel_s += day.kernel_s;
    sum.idle_s += day.idle_s;
    sum.unknown_s += day.unknown_s;
    sum.failed_s += day.failed_s;
    add(sum.energy_j, day.energy_j);
    add(sum.cpu_s, day.cpu_s);
    add(sum.read_bytes, day.read_bytes);
    add(sum.written_bytes, day.written_bytes);
  }
  return out;
}

// One metric of Prometheus with a value for each device that tells one, under our name and, where
// there is one, the name that NVIDIA's exporter uses with its unit.
class Exposition {
 public:
  explicit Exposition(const Json& status) : status_(status) {}

  void gauge(const char* name, const char* what, const char* key) {
    gauge(name, what, status_, key);
  }
  void gauge(const char* name, const char* what, const Json& of, const char* key) {
    if (!of.contains(key) || of[key].is_null()) return;
    head(name, what, "gauge");
    text += std::string(name) + " " + of[key].dump() + "\n";
  }
  void of_devices(const char* name, const char* what, const char* type, const char* key,
                  double scale) {
    head(name, what, type);
    for (const Json& device : status_["devices"]) {
      if (!device.contains(key) || device[key].is_null()) continue;
      char value[48];
      std::snprintf(value, sizeof value, "%.17g", device[key].get<double>() * scale);
      text += std::string(name) + "{gpu=\"" + device["device"].dump() + "\",UUID=\"" +
              device["uuid"].get<std::string>() + "\"} " + value + "\n";
    }
  }
  /// Of the jobs that run, each with its project.
  void of_jobs(const char* name, const char* what, const char* type, const char* key,
               const Json& jobs) {
    head(name, what, type);
    for (const Json& job : jobs) {
      if (job["used"][key].is_null()) continue;
      text += std::string(name) + "{job=\"" + job["id"].dump() + "\",project=\"" +
              job["project"].get<std::string>() + "\"} " + job["used"][key].dump() + "\n";
    }
  }
  std::string text;

 private:
  void head(const char* name, const char* what, const char* type) {
    text += std::string("# HELP ") + name + " " + what + "\n# TYPE " + name + " " + type + "\n";
  }
  const Json& status_;
};

}  // namespace

Json device_json(const devices::DeviceSample& sample) {
  Json json;
  json["device"] = sample.index;
  json["name"] = sample.name;
  json["uuid"] = sample.uuid;
  json["utilisation"] = maybe(sample.utilisation);
  json["memory_used_bytes"] = maybe(sample.memory_used_bytes);
  json["memory_total_bytes"] = maybe(sample.memory_total_bytes);
  json["memory_free_bytes"] = maybe(sample.memory_free_bytes);
  json["memory_reserved_bytes"] = maybe(sample.memory_reserved_bytes);
  json["sent_bytes_s"] = maybe(sample.sent_bytes_s);
  json["received_bytes_s"] = maybe(sample.received_bytes_s);
  json["power_w"] = maybe(sample.power_w);
  json["energy_j"] = maybe(sample.energy_j);
  json["temperature_c"] = maybe(sample.temperature_c);
  json["core_clock_mhz"] = maybe(sample.core_clock_mhz);
  json["memory_clock_mhz"] = maybe(sample.memory_clock_mhz);
  json["ecc_corrected"] = maybe(sample.ecc_corrected);
  json["ecc_uncorrected"] = maybe(sample.ecc_uncorrected);
  json["xid"] = maybe(sample.xid);
  json["missing"] = sample.missing;
  return json;
}

Json cpu_json(const devices::CpuSample& sample) {
  return {{"utilisation", maybe(sample.utilisation)},
          {"memory_used_bytes", maybe(sample.memory_used_bytes)},
          {"memory_total_bytes", maybe(sample.memory_total_bytes)},
          {"group_cores", maybe(sample.group_cores)},
          {"group_memory_used_bytes", maybe(sample.group_memory_used_bytes)},
          {"group_memory_limit_bytes", maybe(sample.group_memory_limit_bytes)}};
}

Json devices_json(const Controller& controller) {
  Json json = Json::array();
  for (const devices::DeviceSample& sample : controller.devices().devices) {
    json.push_back(device_json(sample));
    json.back()["quarantined"] = controller.quarantine().closed().contains(sample.index);
    const auto& uses = controller.meter().devices();
    const auto use = uses.find(sample.index);
    if (use == uses.end()) continue;
    json.back()["kernel_s"] = use->second.kernel_s;
    json.back()["idle_held_s"] = use->second.idle_held_s;
    json.back()["idle_free_s"] = use->second.idle_free_s;
    json.back()["unknown_s"] = use->second.unknown_s;
  }
  return json;
}

Json spent_json(const Controller::Spent& spent) {
  Json json;
  const Use use = spent.devices.value_or(Use());
  const auto of_devices = [&](const char* name, double value) {
    json[name] = spent.devices ? Json(value) : Json();
  };
  of_devices("gpu_held_s", use.held_s);
  of_devices("gpu_kernel_s", use.kernel_s);
  of_devices("gpu_idle_s", use.idle_s);
  of_devices("gpu_unknown_s", use.unknown_s);
  json["gpu_memory_bytes"] = maybe(use.memory_bytes);
  json["gpu_memory_peak_bytes"] = maybe(use.memory_peak_bytes);
  json["gpu_moved_bytes"] = maybe(use.moved_bytes);
  json["energy_j"] = maybe(use.energy_j);
  json["cpu_s"] = maybe(spent.groups.cpu_s);
  json["memory_peak_bytes"] = maybe(spent.groups.memory_peak_bytes);
  json["read_bytes"] = spent.disk ? Json(spent.disk->read_bytes) : Json();
  json["written_bytes"] = spent.disk ? Json(spent.disk->written_bytes) : Json();
  return json;
}

http::Response Api::report(const http::Request& request, const Caller& caller) {
  const auto named = request.query.find("project");
  const std::string project = named == request.query.end() ? "" : named->second;
  if (!project.empty()) {
    check_member(project, caller);
  } else if (!caller.admin) {
    throw Error(Code::cancelled, "only an administrator sees all projects", "forbidden",
                "Name a project of yours");
  }
  const auto from_s = static_cast<double>(query_number(request, "from", 0));
  const auto to_s = static_cast<double>(query_number(request, "to", 1'000'000'000'000));
  const auto sums = daemon_.ask(
      [&](Controller& controller) { return controller.store().usage(project, from_s, to_s); });
  Json json;
  json["projects"] = Json::array();
  for (const UsageSum& sum : by_project(sums)) json["projects"].push_back(sum_json(sum));
  json["days"] = Json::array();
  for (const UsageSum& sum : sums) {
    json["days"].push_back(sum_json(sum));
    json["days"].back()["day"] = sum.day;
  }
  return ok(json);
}

http::Response Api::history(const http::Request& request) {
  const auto named = request.query.find("name");
  const std::string name = named == request.query.end() ? "utilisation" : named->second;
  const int64_t device = std::clamp<int64_t>(query_number(request, "device", 0), 0, max_devices);
  const int64_t from_s = query_number(request, "from", 0);
  const int64_t to_s = query_number(request, "to", 1'000'000'000'000);
  const int64_t resolution_s = query_number(request, "coarse", 0) != 0 ? coarse_s : fine_s;
  const auto rows = daemon_.ask([&](Controller& controller) {
    return controller.store().metrics(static_cast<int>(device), name, resolution_s, from_s, to_s);
  });
  Json points = Json::array();
  for (const MetricRow& row : rows) points.push_back(Json::array({row.at_s, row.value}));
  return ok(
      {{"device", device}, {"name", name}, {"resolution_s", resolution_s}, {"points", points}});
}

// Those that the caller may see.
std::vector<JobView> Api::running_jobs(const Caller& caller) {
  return daemon_.ask([&caller](Controller& controller) {
    std::vector<JobView> out;
    for (const int64_t id : controller.running()) {
      auto view = controller.show(id);
      if (view && may_see(controller, *view, caller)) out.push_back(std::move(*view));
    }
    return out;
  });
}

http::Response Api::metrics(const Caller& caller) {
  const Json status = Json::parse(this->status().body);
  Exposition out(status);
  out.gauge("dais_gpus", "GPUs of the machine", "gpus");
  out.gauge("dais_gpus_free", "GPUs that no job holds", "gpus_free");
  out.gauge("dais_cpus_free", "CPUs that no job holds", "cpus_free");
  out.gauge("dais_memory_free_mebibytes", "Memory that no job holds", "memory_free_mib");
  out.gauge("dais_jobs_waiting", "Jobs in the queue", "jobs_waiting");
  out.gauge("dais_jobs_running", "Jobs that hold a place", "jobs_running");
  const Json cpu = status.value("cpu", Json::object());
  out.gauge("dais_cpu_utilisation", "Part of the CPUs' time spent on work", cpu, "utilisation");
  out.gauge("dais_memory_used_bytes", "Memory of the machine in use", cpu, "memory_used_bytes");
  const auto both = [&](const char* ours, const char* theirs, const char* what, const char* type,
                        const char* key, double scale) {
    out.of_devices(ours, what, type, key, 1);
    if (theirs) out.of_devices(theirs, what, type, key, scale);
  };
  both("dais_gpu_utilisation", "DCGM_FI_DEV_GPU_UTIL", "Part of the time that a kernel ran",
       "gauge", "utilisation", 100);
  both("dais_gpu_memory_used_bytes", "DCGM_FI_DEV_FB_USED", "Memory in use", "gauge",
       "memory_used_bytes", 1.0 / (1 << 20));
  both("dais_gpu_memory_free_bytes", "DCGM_FI_DEV_FB_FREE", "Memory not in use", "gauge",
       "memory_free_bytes", 1.0 / (1 << 20));
  both("dais_gpu_memory_reserved_bytes", "DCGM_FI_DEV_FB_RESERVED", "Memory the driver keeps",
       "gauge", "memory_reserved_bytes", 1.0 / (1 << 20));
  both("dais_gpu_core_clock_megahertz", "DCGM_FI_DEV_SM_CLOCK", "Clock of the processors", "gauge",
       "core_clock_mhz", 1);
  both("dais_gpu_memory_clock_megahertz", "DCGM_FI_DEV_MEM_CLOCK", "Clock of the memory", "gauge",
       "memory_clock_mhz", 1);
  both("dais_gpu_ecc_corrected_errors", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
       "Errors of memory that were corrected", "counter", "ecc_corrected", 1);
  both("dais_gpu_ecc_uncorrected_errors", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
       "Errors of memory that were not", "counter", "ecc_uncorrected", 1);
  both("dais_gpu_xid", "DCGM_FI_DEV_XID_ERRORS", "Last critical error; 0: none", "gauge", "xid", 1);
  both("dais_gpu_power_watts", "DCGM_FI_DEV_POWER_USAGE", "Power drawn", "gauge", "power_w", 1);
  both("dais_gpu_energy_joules", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy used", "counter",
       "energy_j", 1000);
  both("dais_gpu_temperature_celsius", "DCGM_FI_DEV_GPU_TEMP", "Temperature", "gauge",
       "temperature_c", 1);
  both("dais_gpu_sent_bytes_per_second", "DCGM_FI_PROF_PCIE_TX_BYTES", "Sent over PCIe", "gauge",
       "sent_bytes_s", 1);
  both("dais_gpu_received_bytes_per_second", "DCGM_FI_PROF_PCIE_RX_BYTES", "Received over PCIe",
       "gauge", "received_bytes_s", 1);
  both("dais_gpu_kernel_seconds", nullptr, "Time that a kernel ran", "counter", "kernel_s", 1);
  const std::vector<JobView> running = running_jobs(caller);
  const Json jobs = daemon_.ask([&running](Controller& controller) {
    Json all = Json::array();
    for (const JobView& view : running) {
      const auto spent = controller.spent(view.row.id);
      if (!spent) continue;
      all.push_back(
          {{"id", view.row.id}, {"project", view.request.project}, {"used", spent_json(*spent)}});
    }
    return all;
  });
  out.of_jobs("dais_job_gpu_kernel_seconds", "GPU time with a kernel", "counter", "gpu_kernel_s",
              jobs);
  out.of_jobs("dais_job_gpu_idle_seconds", "GPU time without one", "counter", "gpu_idle_s", jobs);
  out.of_jobs("dais_job_gpu_memory_bytes", "GPU memory in use", "gauge", "gpu_memory_bytes", jobs);
  out.of_jobs("dais_job_cpu_seconds", "CPU time", "counter", "cpu_s", jobs);
  out.of_jobs("dais_job_memory_peak_bytes", "Most memory", "gauge", "memory_peak_bytes", jobs);
  out.of_jobs("dais_job_read_bytes", "Read from storage", "counter", "read_bytes", jobs);
  out.of_jobs("dais_job_written_bytes", "Written to storage", "counter", "written_bytes", jobs);
  return {200, "text/plain; version=0.0.4", out.text, nullptr};
}

}  // namespace dais::jobs
