// A stand-in for NVIDIA's management library, for tests alone: its devices say that they are none.
// DAIS_FAKE_NVML names a file of lines `DEVICE KEY VALUE`; a key that a device lacks answers "not
// supported", the value `error` an unknown error. A device exists when any line names it; without
// the file nothing starts. `process PID USED SM` lines may repeat.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int ok = 0, uninitialized = 1, invalid = 2, not_supported = 3, too_small = 7,
              not_loaded = 9, unknown = 999;

struct FakeProcess {
  unsigned pid;
  unsigned long long used;
  unsigned sm;
};
struct FakeDevice {
  std::map<std::string, std::string> values;
  std::vector<FakeProcess> processes;
};

std::map<unsigned, FakeDevice> devices;
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
    if (key == "process") {
      FakeProcess process{static_cast<unsigned>(std::stoul(value)), 0, 0};
      words >> process.used >> process.sm;
      devices[device].processes.push_back(process);
    } else {
      devices[device].values[key] = value;
    }
  }
  return true;
}

FakeDevice* device_of(void* handle) {
  // Read anew at each call, so that a test changes what the device tells.
  read_devices();
  const auto found = devices.find(static_cast<unsigned>(reinterpret_cast<size_t>(handle)) - 1);
  return found == devices.end() ? nullptr : &found->second;
}

template <typename Number>
int give(void* handle, const char* key, Number* out) {
  const FakeDevice* device = device_of(handle);
  if (!started) return uninitialized;
  if (!device) return invalid;
  const auto found = device->values.find(key);
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
  unsigned long long total, free, used;
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
  return text(out, size, "FAKE-" + std::to_string(reinterpret_cast<size_t>(handle) - 1));
}
int nvmlDeviceGetUtilizationRates(void* handle, FakeRates* rates) {
  return give(handle, "utilisation", &rates->gpu);
}
int nvmlDeviceGetMemoryInfo(void* handle, FakeMemory* memory) {
  const int code = give(handle, "memory_total", &memory->total);
  return code == ok ? give(handle, "memory_used", &memory->used) : code;
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
  const unsigned room = *count;
  *count = static_cast<unsigned>(device->processes.size());
  if (*count > room) return too_small;
  for (unsigned i = 0; i < *count; ++i) {
    out[i] = {device->processes[i].pid, device->processes[i].used, 0, 0};
  }
  return ok;
}
int nvmlDeviceGetProcessUtilization(void* handle, FakeProcessRate* out, unsigned* count,
                                    unsigned long long) {
  const FakeDevice* device = device_of(handle);
  if (!device) return invalid;
  const unsigned room = *count;
  *count = static_cast<unsigned>(device->processes.size());
  if (*count > room) return too_small;
  for (unsigned i = 0; i < *count; ++i) {
    out[i] = {device->processes[i].pid, 1, device->processes[i].sm, 0, 0, 0};
  }
  return ok;
}
}
