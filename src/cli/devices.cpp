#include <nlohmann/json.hpp>

#include "api/device.h"
#include "backends/cpu/isa.h"
#include "backends/cuda/api/cupti.h"
#include "backends/cuda/device.h"
#include "base/threads.h"
#include "cli/command.h"

namespace dais::cli {
namespace {

using nlohmann::json;

std::vector<cuda::LibraryReport> library_reports() {
  const cuda::Tables& tables = cuda::system_tables();
  int version = 0;
  if (tables.driver.report.usable()) tables.driver.api.driver_get_version(&version);
  return {tables.driver.report, tables.nvrtc.report, tables.cublaslt.report, tables.cudnn.report,
          cuda::load_cupti(version).report};
}

json to_json(const cuda::LibraryReport& report) {
  json out{{"name", report.name}, {"usable", report.usable()}};
  if (!report.file.empty()) out["file"] = report.file;
  if (!report.version.empty()) out["version"] = report.version;
  if (!report.usable()) {
    out["problem"] = report.problem;
    out["remedy"] = report.remedy;
  }
  return out;
}

json to_json(const cuda::DeviceInfo& info) {
  return {
      {"device", "gpu:" + std::to_string(info.ordinal)},
      {"name", info.name},
      {"uuid", info.uuid},
      {"pci_bus_id", info.pci_bus_id},
      {"compute_capability", std::to_string(info.arch / 10) + "." + std::to_string(info.arch % 10)},
      {"multiprocessors", info.multiprocessors},
      {"memory_bytes", info.memory_bytes},
      {"l2_bytes", info.l2_bytes}};
}

json describe() {
  json out;
  out["cpu"] = {{"instruction_set", isa_name(cpu::isa())}, {"cores", usable_cores()}};
  out["libraries"] = json::array();
  for (const auto& report : library_reports()) out["libraries"].push_back(to_json(report));
  out["gpus"] = json::array();
  for (const auto& info : cuda::list_devices(cuda::system_tables()))
    out["gpus"].push_back(to_json(info));
  const std::string problem = emulated_problem();
  out["emulated"] = {{"usable", problem.empty()}};
  if (!problem.empty()) out["emulated"]["problem"] = problem;
  return out;
}

void print(const json& all) {
  std::printf("cpu        %s, %d cores\n", all["cpu"]["instruction_set"].get<std::string>().c_str(),
              all["cpu"]["cores"].get<int>());
  for (const json& gpu : all["gpus"])
    std::printf("%-10s %s, compute capability %s, %d multiprocessors, %.1f GiB, %s\n",
                gpu["device"].get<std::string>().c_str(), gpu["name"].get<std::string>().c_str(),
                gpu["compute_capability"].get<std::string>().c_str(),
                gpu["multiprocessors"].get<int>(),
                static_cast<double>(gpu["memory_bytes"].get<size_t>()) / (1 << 30),
                gpu["pci_bus_id"].get<std::string>().c_str());
  if (all["gpus"].empty()) std::printf("gpu        none\n");
  if (all["emulated"]["usable"].get<bool>())
    std::printf("emulated   kernels of the GPU on the CPU, for tests (not hardware)\n");
  else
    std::printf("emulated   not usable: %s\n",
                all["emulated"]["problem"].get<std::string>().c_str());
  std::printf("\n");
  for (const json& library : all["libraries"]) {
    const std::string name = library["name"];
    if (library["usable"].get<bool>())
      std::printf("%-10s %s, %s\n", name.c_str(), library.value("version", "").c_str(),
                  library.value("file", "").c_str());
    else
      std::printf("%-10s not usable: %s\n           %s\n", name.c_str(),
                  library["problem"].get<std::string>().c_str(),
                  library["remedy"].get<std::string>().c_str());
  }
}

}  // namespace

void add_devices(Program& program) {
  auto* command = program.app.add_subcommand(
      "devices", "Show where models can run: what was found, what was not and why");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  command->footer("Example: dais devices --json");
  command->callback([as_json] {
    const json all = describe();
    if (*as_json)
      std::printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    else
      print(all);
  });
}

}  // namespace dais::cli
