#include "devices/nvml.h"

#include <dlfcn.h>

#include <array>
#include <functional>
#include <map>

#include "base/error.h"

namespace dais::devices {
namespace {

using Device = void*;
constexpr int ok = 0;
constexpr int too_small = 7;
constexpr int not_supported = 3;
constexpr int not_found = 6;
constexpr uint64_t no_value = ~uint64_t{0};

struct Rates {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned memory_version = sizeof(Memory) | 2U << 24;
struct MemoryBefore {  // of drivers older than 510
  unsigned long long total, free, used;
};
struct Event {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long critical_error = 8;  // a type of event; its data is the XID
constexpr int timed_out = 10;
enum Clock : unsigned { core_clock = 1, memory_clock = 2 };
enum EccKind : unsigned { corrected = 0, uncorrected = 1 };
constexpr unsigned since_driver = 0;
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct ProcessRate {
  unsigned pid;
  unsigned long long at_us;
  unsigned sm, memory, encoder, decoder;  // percent
};

enum Direction : unsigned { sent = 0, received = 1 };
constexpr unsigned core_sensor = 0;

}  // namespace

// Functions that a driver does not have stay null and count as not supported.
struct Nvml::Table {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*rates)(Device, Rates*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*memory_before)(Device, MemoryBefore*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*ecc)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*events)(void**) = nullptr;
  int (*free_events)(void*) = nullptr;
  int (*ask_events)(Device, unsigned long long, void*) = nullptr;
  int (*next_event)(void*, Event*, unsigned) = nullptr;
  int (*pcie)(Device, unsigned, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*processes)(Device, unsigned*, Process*) = nullptr;
  int (*minor)(Device, unsigned*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*most_parts)(Device, unsigned*) = nullptr;
  int (*part)(Device, unsigned, Device*) = nullptr;
  int (*gpu_instance)(Device, unsigned*) = nullptr;
  int (*compute_instance)(Device, unsigned*) = nullptr;
  int (*process_rates)(Device, ProcessRate*, unsigned*, unsigned long long) = nullptr;
  std::vector<Unit> units;  // that sample() counts
  void* event_set = nullptr;
  std::map<Device, int> event_codes;  // what it said when asked to tell of a device
  std::map<Device, int64_t> xids;     // the last of each

  template <typename Function>
  void find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
  }

  std::string text(int code) const {
    const char* said = error_text ? error_text(code) : nullptr;
    return said ? said : "code " + std::to_string(code);
  }

  // The code of a call, or not_supported where the driver has no such function.
  template <typename Function, typename... Arguments>
  int call(Function function, Arguments... arguments) const {
    return function ? function(arguments...) : not_supported;
  }

  int open(const Unit& unit, Device* device) const;
  void add_parts(Device device, const Unit& whole, std::vector<Unit>& out) const;
  std::string uuid_of(Device device) const;
  void read_memory(Device device, DeviceSample& sample) const;
  void read_health(Device device, DeviceSample& sample) const;
  void read_xid(Device whole, DeviceSample& sample);
  void read_processes(Device device, DeviceSample& sample) const;
  // True when a call succeeded; else it is noted what is missing and why.
  bool read(DeviceSample& sample, const char* what, int code) const {
    if (code != ok) sample.missing.push_back(std::string(what) + ": " + text(code));
    return code == ok;
  }
};

Nvml::Nvml(const std::string& library) : table_(std::make_unique<Table>()) {
  Table& t = *table_;
  t.library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!t.library) {
    const char* why = dlerror();
    throw Error(Code::unavailable, std::string("NVML cannot be opened: ") + (why ? why : "?"),
                library, "Install NVIDIA's driver; without it no device is measured");
  }
  t.find(t.init, "nvmlInit_v2");
  t.find(t.shutdown, "nvmlShutdown");
  t.find(t.error_text, "nvmlErrorString");
  t.find(t.count, "nvmlDeviceGetCount_v2");
  t.find(t.handle, "nvmlDeviceGetHandleByIndex_v2");
  t.find(t.name, "nvmlDeviceGetName");
  t.find(t.uuid, "nvmlDeviceGetUUID");
  t.find(t.rates, "nvmlDeviceGetUtilizationRates");
  t.find(t.memory, "nvmlDeviceGetMemoryInfo_v2");
  t.find(t.memory_before, "nvmlDeviceGetMemoryInfo");
  t.find(t.clock, "nvmlDeviceGetClockInfo");
  t.find(t.ecc, "nvmlDeviceGetTotalEccErrors");
  t.find(t.events, "nvmlEventSetCreate");
  t.find(t.free_events, "nvmlEventSetFree");
  t.find(t.ask_events, "nvmlDeviceRegisterEvents");
  t.find(t.next_event, "nvmlEventSetWait_v2");
  t.find(t.pcie, "nvmlDeviceGetPcieThroughput");
  t.find(t.power, "nvmlDeviceGetPowerUsage");
  t.find(t.energy, "nvmlDeviceGetTotalEnergyConsumption");
  t.find(t.temperature, "nvmlDeviceGetTemperature");
  t.find(t.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  t.find(t.minor, "nvmlDeviceGetMinorNumber");
  t.find(t.mig_mode, "nvmlDeviceGetMigMode");
  t.find(t.most_parts, "nvmlDeviceGetMaxMigDeviceCount");
  t.find(t.part, "nvmlDeviceGetMigDeviceHandleByIndex");
  t.find(t.gpu_instance, "nvmlDeviceGetGpuInstanceId");
  t.find(t.compute_instance, "nvmlDeviceGetComputeInstanceId");
  t.find(t.process_rates, "nvmlDeviceGetProcessUtilization");
  const int begun = t.call(t.init);
  if (begun == ok && t.count && t.handle) {
    unsigned count = 0;
    if (t.count(&count) == ok) t.units = units();
    return;
  }
  const std::string why = begun == ok ? "it lacks functions" : t.text(begun);
  dlclose(t.library);
  throw Error(Code::unavailable, "NVML does not start: " + why, library,
              "Check the driver with nvidia-smi");
}

Nvml::~Nvml() {
  if (table_->event_set) table_->call(table_->free_events, table_->event_set);
  table_->call(table_->shutdown);
  dlclose(table_->library);
}

int Nvml::Table::open(const Unit& unit, Device* device) const {
  const int found = handle(static_cast<unsigned>(unit.gpu), device);
  if (found != ok || unit.part < 0) return found;
  const Device whole = *device;
  return call(part, whole, static_cast<unsigned>(unit.part), device);
}

std::string Nvml::Table::uuid_of(Device device) const {
  std::array<char, 128> text{};
  return call(uuid, device, text.data(), unsigned{96}) == ok ? text.data() : "";
}

// Parts may have gaps between their numbers.
void Nvml::Table::add_parts(Device device, const Unit& whole, std::vector<Unit>& out) const {
  unsigned most = 0;
  call(most_parts, device, &most);
  for (unsigned i = 0; i < most; ++i) {
    Device one = nullptr;
    if (call(part, device, i, &one) != ok) continue;
    Unit unit = whole;
    unit.part = static_cast<int>(i);
    unit.uuid = uuid_of(one);
    unsigned number = 0;
    if (call(gpu_instance, one, &number) == ok) unit.gpu_instance = static_cast<int>(number);
    number = 0;
    if (call(compute_instance, one, &number) == ok) {
      unit.compute_instance = static_cast<int>(number);
    }
    out.push_back(unit);
  }
}

std::vector<Unit> Nvml::units() const {
  const Table& t = *table_;
  unsigned count = 0;
  const int code = t.count(&count);
  if (code != ok) throw Error(Code::unavailable, "NVML counts no devices: " + t.text(code));
  std::vector<Unit> out;
  for (unsigned i = 0; i < count; ++i) {
    Unit unit;
    unit.gpu = unit.minor = static_cast<int>(i);
    Device device = nullptr;
    // One that does not answer now is still one.
    if (t.handle(i, &device) == ok) {
      unsigned number = 0, mode = 0, later = 0;
      if (t.call(t.minor, device, &number) == ok) unit.minor = static_cast<int>(number);
      unit.uuid = t.uuid_of(device);
      if (t.call(t.mig_mode, device, &mode, &later) == ok && mode == 1) {
        t.add_parts(device, unit, out);
        continue;
      }
    }
    out.push_back(unit);
  }
  return out;
}

int Nvml::devices() const {
  table_->units = units();
  return static_cast<int>(table_->units.size());
}

void Nvml::Table::read_memory(Device device, DeviceSample& sample) const {
  Memory memory{};
  memory.version = memory_version;
  int code = call(this->memory, device, &memory);
  const bool reserved = code == ok;
  if (!reserved) {
    MemoryBefore before{};
    code = call(memory_before, device, &before);
    memory.total = before.total;
    memory.free = before.free;
    memory.used = before.used;
  }
  if (!read(sample, "memory", code) || memory.total == no_value) return;
  const auto known = [](unsigned long long bytes) -> std::optional<int64_t> {
    return bytes == no_value ? std::nullopt : std::optional(static_cast<int64_t>(bytes));
  };
  sample.memory_total_bytes = known(memory.total);
  sample.memory_used_bytes = known(memory.used);
  sample.memory_free_bytes = known(memory.free);
  if (reserved) sample.memory_reserved_bytes = known(memory.reserved);
}

void Nvml::Table::read_health(Device device, DeviceSample& sample) const {
  unsigned value = 0;
  if (read(sample, "power", call(power, device, &value))) sample.power_w = value / 1000.0;
  if (read(sample, "temperature", call(temperature, device, core_sensor, &value))) {
    sample.temperature_c = value;
  }
  if (read(sample, "core clock", call(clock, device, unsigned{core_clock}, &value))) {
    sample.core_clock_mhz = value;
  }
  if (read(sample, "memory clock", call(clock, device, unsigned{memory_clock}, &value))) {
    sample.memory_clock_mhz = value;
  }
  unsigned long long count = 0;
  if (read(sample, "energy", call(energy, device, &count)) && count != no_value) {
    sample.energy_j = static_cast<double>(count) / 1000;
  }
  if (read(sample, "ECC", call(ecc, device, unsigned{corrected}, since_driver, &count))) {
    sample.ecc_corrected = static_cast<int64_t>(count);
    if (call(ecc, device, unsigned{uncorrected}, since_driver, &count) == ok) {
      sample.ecc_uncorrected = static_cast<int64_t>(count);
    }
  }
}

// What was reported since the last look, of whichever device.
void Nvml::Table::read_xid(Device whole, DeviceSample& sample) {
  if (!event_set && call(events, &event_set) != ok) event_set = nullptr;
  const auto [asked, first] = event_codes.try_emplace(whole, not_supported);
  if (first && event_set) asked->second = call(ask_events, whole, critical_error, event_set);
  if (!read(sample, "XID", asked->second)) return;
  Event event{};
  int code = call(next_event, event_set, &event, 0U);
  for (int i = 0; code == ok && i < 1000; ++i) {
    xids[event.device] = static_cast<int64_t>(event.data);
    code = call(next_event, event_set, &event, 0U);
  }
  if (code == ok || code == timed_out) sample.xid = xids[whole];
}

void Nvml::Table::read_processes(Device device, DeviceSample& sample) const {
  unsigned count = 64;
  std::vector<Process> found(count);
  int code = call(processes, device, &count, found.data());
  if (code == too_small && count < 65'536) {
    found.resize(count += 16);
    code = call(processes, device, &count, found.data());
  }
  if (code != ok) {
    sample.missing.push_back("processes: " + text(code));
    return;
  }
  sample.processes.emplace();
  std::map<int, ProcessSample> by_pid;
  for (unsigned i = 0; i < count; ++i) {
    ProcessSample& process = by_pid[static_cast<int>(found[i].pid)];
    process.pid = static_cast<int>(found[i].pid);
    if (found[i].used != no_value) process.memory_bytes = static_cast<int64_t>(found[i].used);
  }
  std::vector<ProcessRate> rates(256);
  unsigned samples = static_cast<unsigned>(rates.size());
  // Of each process the newest counts; not found (6) says that nobody computed lately.
  const int rated = call(process_rates, device, rates.data(), &samples, 0ULL);
  std::map<int, unsigned long long> newest;
  for (unsigned i = 0; rated == ok && i < samples && i < rates.size(); ++i) {
    const int pid = static_cast<int>(rates[i].pid);
    const auto process = by_pid.find(pid);
    if (process == by_pid.end() || rates[i].at_us < newest[pid] || rates[i].sm > 100) continue;
    newest[pid] = rates[i].at_us;
    process->second.utilisation = rates[i].sm / 100.0;
  }
  for (auto& [pid, process] : by_pid) sample.processes->push_back(process);
}

DeviceSample Nvml::sample(int device) const {
  Table& t = *table_;
  DeviceSample out;
  out.index = device;
  Device handle = nullptr;
  const bool known = device >= 0 && static_cast<size_t>(device) < t.units.size();
  const int found = known ? t.open(t.units[static_cast<size_t>(device)], &handle) : not_found;
  if (found != ok) {
    throw Error(Code::unavailable, "the device does not answer: " + t.text(found),
                "device " + std::to_string(device), "Check the driver with nvidia-smi");
  }
  const auto read = [&](const char* what, int code) { return t.read(out, what, code); };
  std::array<char, 128> text{};
  if (read("name", t.call(t.name, handle, text.data(), unsigned{96}))) out.name = text.data();
  if (read("uuid", t.call(t.uuid, handle, text.data(), unsigned{96}))) out.uuid = text.data();
  Rates rates{};
  if (read("utilisation", t.call(t.rates, handle, &rates))) {
    if (rates.gpu <= 100) out.utilisation = rates.gpu / 100.0;
  }
  t.read_memory(handle, out);
  unsigned value = 0;
  // NVML counts 1024 bytes a second.
  if (read("sent", t.call(t.pcie, handle, unsigned{sent}, &value)))
    out.sent_bytes_s = value * 1024.0;
  if (read("received", t.call(t.pcie, handle, unsigned{received}, &value))) {
    out.received_bytes_s = value * 1024.0;
  }
  t.read_health(handle, out);
  Device whole = nullptr;
  if (t.handle(static_cast<unsigned>(t.units[static_cast<size_t>(device)].gpu), &whole) == ok) {
    t.read_xid(whole, out);
  }
  t.read_processes(handle, out);
  return out;
}

}  // namespace dais::devices
