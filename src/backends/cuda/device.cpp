#include "backends/cuda/device.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/check.h"
#include "base/error.h"

namespace dais::cuda {
namespace {

std::string bytes_text(size_t bytes) {
  char text[32];
  const auto wide = static_cast<double>(bytes);
  if (bytes >= size_t{1} << 30)
    std::snprintf(text, sizeof text, "%.2f GiB", wide / (1 << 30));
  else
    std::snprintf(text, sizeof text, "%.2f MiB", wide / (1 << 20));
  return text;
}

std::string hex(const DriverUuid& uuid) {
  std::string out = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", uuid.bytes[i]);
    out += text;
    if (i == 3 || i == 5 || i == 7 || i == 9) out += '-';
  }
  return out;
}

DeviceInfo describe(const Tables& tables, int ordinal, DriverDevice* handle) {
  const DriverApi& driver = tables.driver.api;
  DeviceInfo out;
  out.ordinal = ordinal;
  out.hardware = tables.hardware;
  DriverDevice device = 0;
  check(driver, driver.device_get(&device, ordinal), "opening the device");
  if (handle) *handle = device;
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    check(driver, driver.device_get_attribute(&value, which, device), "asking the device");
    return value;
  };
  char text[256] = {};
  check(driver, driver.device_get_name(text, sizeof text - 1, device), "asking for its name");
  out.name = text;
  DriverUuid uuid{};
  if (driver.device_get_uuid(&uuid, device) == DriverResult::success) out.uuid = hex(uuid);
  if (driver.device_get_pci_bus_id(text, sizeof text - 1, device) == DriverResult::success)
    out.pci_bus_id = text;
  check(driver, driver.device_total_mem(&out.memory_bytes, device), "asking for its memory");
  out.arch = attribute(DeviceAttribute::compute_capability_major) * 10 +
             attribute(DeviceAttribute::compute_capability_minor);
  out.multiprocessors = attribute(DeviceAttribute::multiprocessor_count);
  out.max_shared_bytes = attribute(DeviceAttribute::max_shared_memory_per_block_optin);
  out.warp = attribute(DeviceAttribute::warp_size);
  out.l2_bytes = static_cast<size_t>(attribute(DeviceAttribute::l2_cache_size));
  return out;
}

void require(const LibraryReport& report) {
  if (!report.usable())
    throw Error(Code::unavailable, report.name + ": " + report.problem, "GPU", report.remedy);
}

}  // namespace

std::vector<DeviceInfo> list_devices(const Tables& tables) {
  std::vector<DeviceInfo> out;
  int count = 0;
  if (!tables.driver.report.usable() ||
      tables.driver.api.device_get_count(&count) != DriverResult::success)
    return out;
  for (int i = 0; i < count; ++i) out.push_back(describe(tables, i, nullptr));
  return out;
}

std::shared_ptr<Device> Device::open(const Tables& tables, int ordinal) {
  require(tables.driver.report);
  require(tables.nvrtc.report);
  int count = 0;
  check(tables.driver.api, tables.driver.api.device_get_count(&count), "counting devices");
  if (ordinal < 0 || ordinal >= count)
    throw Error(Code::not_found, "there is no GPU " + std::to_string(ordinal), "",
                "The driver lists " + std::to_string(count) + "; see dais devices");
  // The constructor is private, so make_shared cannot call it.
  std::shared_ptr<Device> device(new Device(tables));
  device->info_ = describe(tables, ordinal, &device->handle_);
  if (device->info_.arch < 60)
    throw Error(Code::unavailable,
                device->info_.name + " has compute capability " +
                    std::to_string(device->info_.arch / 10) + "." +
                    std::to_string(device->info_.arch % 10),
                "GPU", "dais needs 6.0 or newer");
  const char* share = std::getenv(memory_share_variable);
  device->share_ = memory_share(share ? share : "", ordinal, device->info_.memory_bytes);
  const DriverApi& driver = device->driver();
  check(driver, driver.device_primary_ctx_retain(&device->context_, device->handle_),
        "making a context");
  device->enter();
  device->make_pool();
  return device;
}

void Device::make_pool() {
  PoolProps props;
  props.location.id = handle_;
  check(driver(), driver().mem_pool_create(&pool_, &props), "making a memory pool");
  // Sessions come and go with the same sizes; trim() gives back what nobody needs.
  uint64_t keep = share_;
  check(driver(), driver().mem_pool_set_attribute(pool_, PoolAttribute::release_threshold, &keep),
        "setting up the memory pool");
}

Device::~Device() {
  if (!context_) return;
  driver().ctx_set_current(context_);
  if (cudnn_.handle) tables_.cudnn.api.destroy(cudnn_.handle);
  if (cublaslt_) tables_.cublaslt.api.destroy(cublaslt_);
  if (pool_) driver().mem_pool_destroy(pool_);
  driver().device_primary_ctx_release(handle_);
}

void Device::enter() const {
  // Other libraries of the process may have made theirs current, so the driver is asked.
  DriverContext current = nullptr;
  if (driver().ctx_get_current(&current) == DriverResult::success && current == context_) return;
  check(driver(), driver().ctx_set_current(context_), "entering the device's context");
}

BlasHandle Device::cublaslt() {
  const std::lock_guard lock(program_mutex_);
  if (!cublaslt_asked_ && tables_.cublaslt.report.usable()) {
    enter();
    if (tables_.cublaslt.api.create(&cublaslt_) != BlasStatus::success) cublaslt_ = nullptr;
  }
  cublaslt_asked_ = true;
  return cublaslt_;
}

DnnLibrary* Device::cudnn() {
  const std::lock_guard lock(program_mutex_);
  if (!cudnn_asked_ && tables_.cudnn.report.usable()) {
    enter();
    if (tables_.cudnn.api.create(&cudnn_.handle) != DnnStatus::success) cudnn_.handle = nullptr;
  }
  cudnn_asked_ = true;
  return cudnn_.handle ? &cudnn_ : nullptr;
}

std::shared_ptr<const Program> Device::program(const ProgramText& text) {
  const std::string key = text.key();
  const std::lock_guard lock(program_mutex_);
  auto& known = programs_[key];
  if (auto found = known.lock()) return found;
  enter();
  auto made = std::make_shared<const Program>(shared_from_this(), text,
                                              compiled_image(tables_, info_.arch, text));
  known = made;
  return made;
}

// What is taken at the same time elsewhere counts: a share is never exceeded, not for a moment.
void Device::charge(size_t bytes, const std::string& holder) {
  size_t charged = 0;
  {
    const std::lock_guard lock(memory_mutex_);
    charged = charged_;
    if (bytes <= share_ - charged) {
      charged_ += bytes;
      return;
    }
  }
  const std::string held = holders();
  throw Error(Code::exhausted,
              "no room for " + bytes_text(bytes) + " (" + holder + "): this job may take " +
                  bytes_text(share_) + " of the device and holds " + bytes_text(charged),
              info_.name,
              "This process holds " + (held.empty() ? "nothing" : held) +
                  "; use a smaller batch, or submit it with a larger part of a GPU");
}

DevicePointer Device::allocate(size_t bytes, const std::string& holder, DriverStream stream) {
  charge(bytes, holder);
  try {
    return take(bytes, holder, stream);
  } catch (...) {
    const std::lock_guard lock(memory_mutex_);
    charged_ -= bytes;
    throw;
  }
}

DevicePointer Device::take(size_t bytes, const std::string& holder, DriverStream stream) {
  enter();
  DevicePointer memory = 0;
  DriverResult result = driver().mem_alloc_from_pool_async(&memory, bytes, pool_, stream);
  if (result == DriverResult::out_of_memory) {
    // What was released may still be on its way back.
    driver().ctx_synchronize();
    trim();
    result = driver().mem_alloc_from_pool_async(&memory, bytes, pool_, stream);
  }
  if (result == DriverResult::out_of_memory) {
    size_t free_bytes = 0, total_bytes = 0;
    driver().mem_get_info(&free_bytes, &total_bytes);
    const std::string held = holders();
    throw Error(Code::exhausted,
                "no room for " + bytes_text(bytes) + " (" + holder +
                    "): " + bytes_text(free_bytes) + " of " + bytes_text(total_bytes) + " are free",
                info_.name,
                "This process holds " + (held.empty() ? "nothing" : held) +
                    "; use a smaller batch, or close what else uses the device");
  }
  check(driver(), result, "taking memory of the device");
  const std::lock_guard lock(memory_mutex_);
  held_[memory] = {holder, bytes};
  return memory;
}

void Device::release(DevicePointer memory, DriverStream stream) noexcept {
  driver().ctx_set_current(context_);
  driver().mem_free_async(memory, stream);
  const std::lock_guard lock(memory_mutex_);
  const auto held = held_.find(memory);
  if (held == held_.end()) return;
  charged_ -= held->second.bytes;
  held_.erase(held);
}

void Device::trim() noexcept { driver().mem_pool_trim_to(pool_, 0); }

size_t Device::held_bytes() const {
  const std::lock_guard lock(memory_mutex_);
  size_t total = 0;
  for (const auto& [address, held] : held_) total += held.bytes;
  return total;
}

size_t Device::free_bytes() const {
  enter();
  size_t free_bytes = 0, total_bytes = 0;
  driver().mem_get_info(&free_bytes, &total_bytes);
  uint64_t reserved = 0, used = 0;
  driver().mem_pool_get_attribute(pool_, PoolAttribute::reserved_mem_current, &reserved);
  driver().mem_pool_get_attribute(pool_, PoolAttribute::used_mem_current, &used);
  const size_t left = free_bytes + (reserved > used ? reserved - used : 0);
  const std::lock_guard lock(memory_mutex_);
  return std::min(left, share_ - charged_);
}

std::string Device::holders() const {
  std::map<std::string, size_t> by_holder;
  {
    const std::lock_guard lock(memory_mutex_);
    for (const auto& [address, held] : held_) by_holder[held.holder] += held.bytes;
  }
  std::vector<std::pair<size_t, std::string>> largest;
  for (const auto& [holder, bytes] : by_holder) largest.emplace_back(bytes, holder);
  std::sort(largest.rbegin(), largest.rend());
  std::string out;
  for (const auto& [bytes, holder] : largest)
    out += (out.empty() ? "" : ", ") + holder + " " + bytes_text(bytes);
  return out;
}

}  // namespace dais::cuda
