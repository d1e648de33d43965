// A stand-in for NVIDIA's management library, for tests alone: its devices say that they are none.
// DAIS_FAKE_NVML names a file of lines `DEVICE KEY VALUE`; a key that a device lacks answers "not
// supported", the value `error` an unknown error. A device exists when any line names it; without
// the file nothing starts. `process PID USED SM` lines may repeat. `mig N` says that MIG divides
// the device into at most N parts; keys of part 0 begin with `mig0.`, and it exists when it has
// any.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int ok = 0, uninitialized = 1, invalid = 2, not_supported = 3, not_found = 6,
              too_small = 7, not_loaded = 9, timed_out = 10, unknown = 999;

struct FakeProcess {
  unsigned pid;
  unsigned long long used;
  unsigned sm;
};
struct FakeDevice {
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<FakeProcess>> processes;  // by what comes before the key
};

std::map<unsigned, FakeDevice> devices;
std::map<void*, unsigned> watched;  // devices whose errors are told, with the last one
bool started = false;

bool read_devices() {
  devices.clear();
  const char* path = std::getenv("DAIS_FAKE_NVML");
  std::ifstream file(path ? path : "");
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    unsigned device = 0;
    std::string key, value;
    if (!(words >> device >> key >> value)) continue;
    if (key.ends_with("process")) {
      FakeProcess process{static_cast<unsigned>(std::stoul(value)), 0, 0};
      words >> process.used >> process.sm;
      devices[device].processes[key.substr(0, key.find("process"))].push_back(process);
    } else {
      devices[device].values[key] = value;
    }
  }
  return true;
}

// A handle is the number of the device and that of its part, each counted from 1.
size_t number_of(void* handle) { return (reinterpret_cast<size_t>(handle) & 0xffff) - 1; }
size_t part_of(void* handle) { return reinterpret_cast<size_t>(handle) >> 16; }
std::string prefix_of(void* handle) {
  return part_of(handle) == 0 ? "" : "mig" + std::to_string(part_of(handle) - 1) + ".";
}

FakeDevice* device_of(void* handle) {
  // Read anew at each call, so that a test changes what the device tells.
  read_devices();
  const auto found = devices.find(static_cast<unsigned>(number_of(handle)));
  return found == devices.end() ? nullptr : &found->second;
}

template <typename Number>
int give(void* handle, const char* key, Number* out) {
  const FakeDevice* device = device_of(handle);
  if (!started) return uninitialized;
  if (!device) return invalid;
  const auto found = device->values.find(prefix_of(handle) + key);
  if (found == device->values.end()) return not_supported;
  if (found->second == "error") return unknown;
  *out = static_cast<Number>(std::stoull(found->second));
  return ok;
}

int text(char* out, unsigned size, const std::string& value) {
  if (value.size() >= size) return too_small;
  std::memcpy(out, value.c_str(), value.size() + 1);
  return ok;
}

}  // namespace

extern "C" {

struct FakeRates {
  unsigned gpu, memory;
};
struct FakeMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct FakeEvent {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct FakeProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct FakeProcessRate {
  unsigned pid;
  unsigned long long at_us;
  unsigned sm, memory, encoder, decoder;
};

int nvmlInit_v2() {
  started = read_devices();
  return started ? ok : not_loaded;
}
int nvmlShutdown() { return ok; }
const char* nvmlErrorString(int code) {
  switch (code) {
    case not_supported: return "Not Supported";
    case not_loaded: return "Driver Not Loaded";
    default: return "Unknown Error";
  }
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = devices.empty() ? 0 : devices.rbegin()->first + 1;
  return ok;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(size_t{index} + 1);
  return devices.count(index) ? ok : invalid;
}
int nvmlDeviceGetName(void*, char* out, unsigned size) {
  return text(out, size, "FAKE (not hardware)");
}
int nvmlDeviceGetUUID(void* handle, char* out, unsigned size) {
  const std::string device = "FAKE-" + std::to_string(number_of(handle));
  if (part_of(handle) == 0) return text(out, size, device);
  return text(out, size, "MIG-" + device + "-" + std::to_string(part_of(handle) - 1));
}
int nvmlDeviceGetMigMode(void* handle, unsigned* mode, unsigned* pending) {
  unsigned parts = 0;
  const int code = give(handle, "mig", &parts);
  *mode = *pending = code == ok;
  return code;
}
int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  return give(handle, "mig", count);
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** part) {
  const FakeDevice* device = device_of(handle);
  if (!device) return invalid;
  const std::string prefix = "mig" + std::to_string(index) + ".";
  const auto first = device->values.lower_bound(prefix);
  if (first == device->values.end() || first->first.compare(0, prefix.size(), prefix) != 0) {
    return not_found;
  }
  *part = reinterpret_cast<void*>((number_of(handle) + 1) | (size_t{index} + 1) << 16);
  return ok;
}
int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* number) {
  return give(handle, "gpu_instance", number);
}
int nvmlDeviceGetComputeInstanceId(void* handle, unsigned* number) {
  return give(handle, "compute_instance", number);
}
int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) {
  return give(handle, "minor", number);
}
int nvmlDeviceGetUtilizationRates(void* handle, FakeRates* rates) {
  return give(handle, "utilisation", &rates->gpu);
}
int nvmlDeviceGetMemoryInfo_v2(void* handle, FakeMemory* memory) {
  if (memory->version != (sizeof *memory | 2U << 24)) return 25;
  const int code = give(handle, "memory_total", &memory->total);
  if (code != ok) return code;
  if (give(handle, "memory_reserved", &memory->reserved) != ok) memory->reserved = 0;
  const int used = give(handle, "memory_used", &memory->used);
  memory->free = memory->total - memory->reserved - memory->used;
  return used;
}
int nvmlDeviceGetClockInfo(void* handle, unsigned clock, unsigned* value) {
  return give(handle, clock == 1 ? "core_clock" : "memory_clock", value);
}
int nvmlDeviceGetTotalEccErrors(void* handle, unsigned kind, unsigned, unsigned long long* count) {
  return give(handle, kind == 0 ? "ecc_corrected" : "ecc_uncorrected", count);
}
int nvmlEventSetCreate(void** set) {
  *set = &watched;
  return ok;
}
int nvmlEventSetFree(void*) {
  watched.clear();
  return ok;
}
int nvmlDeviceRegisterEvents(void* handle, unsigned long long types, void*) {
  unsigned number = 0;
  const int code = give(handle, "xid", &number);
  if (code == ok && types == 8) watched[handle] = 0;
  return code;
}
int nvmlEventSetWait_v2(void*, FakeEvent* event, unsigned) {
  for (auto& [handle, told] : watched) {
    unsigned number = 0;
    if (give(handle, "xid", &number) != ok || number == told) continue;
    told = number;
    *event = {handle, 8, number, 0, 0};
    return ok;
  }
  return timed_out;
}
int nvmlDeviceGetPcieThroughput(void* handle, unsigned counter, unsigned* value) {
  return give(handle, counter == 0 ? "sent" : "received", value);
}
int nvmlDeviceGetPowerUsage(void* handle, unsigned* value) { return give(handle, "power", value); }
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* value) {
  return give(handle, "energy", value);
}
int nvmlDeviceGetTemperature(void* handle, unsigned, unsigned* value) {
  return give(handle, "temperature", value);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, FakeProcessInfo* out) {
  const FakeDevice* device = device_of(handle);
  if (!device) return invalid;
  const std::string prefix = prefix_of(handle);
  if (!device->processes.count(prefix)) {
    *count = 0;
    return ok;
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(device->processes.at(prefix).size());
  if (*count > room) return too_small;
  for (unsigned i = 0; i < *count; ++i) {
    out[i] = {device->processes.at(prefix)[i].pid, device->processes.at(prefix)[i].used, 0, 0};
  }
  return ok;
}
int nvmlDeviceGetProcessUtilization(void* handle, FakeProcessRate* out, unsigned* count,
                                    unsigned long long) {
  const FakeDevice* device = device_of(handle);
  if (!device) return invalid;
  const std::string prefix = prefix_of(handle);
  if (!device->processes.count(prefix)) {
    *count = 0;
    return ok;
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(device->processes.at(prefix).size());
  if (*count > room) return too_small;
  for (unsigned i = 0; i < *count; ++i) {
    out[i] = {device->processes.at(prefix)[i].pid, 1, device->processes.at(prefix)[i].sm, 0, 0, 0};
  }
  return ok;
}
}
