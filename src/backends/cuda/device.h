#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/memory_share.h"
#include "backends/cuda/program.h"
#include "backends/cuda/tables.h"

namespace dais::cuda {

/// What a device is and can do.
struct DeviceInfo {
  int ordinal = 0;
  std::string name, uuid, pci_bus_id;
  int arch = 0;  ///< compute capability: 90 for 9.0
  int multiprocessors = 0;
  int max_shared_bytes = 0;  ///< that a block may ask for
  int warp = 32;
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  bool hardware = true;
};

/// A handle of cuDNN's, which one thread uses at a time.
struct DnnLibrary {
  DnnHandle handle = nullptr;
  std::mutex mutex;
};

/// One device of this process: its context, its memory pool with a list of who holds what, and the
/// programs loaded on it. Any thread may call.
class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Throws `unavailable` with the remedy when the libraries or the device are of no use, and
  /// `not_found` when there is no such device.
  static std::shared_ptr<Device> open(const Tables& tables, int ordinal);
  ~Device();
  Device(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  const Tables& tables() const { return tables_; }
  const DriverApi& driver() const { return tables_.driver.api; }
  /// Makes the device's context current on the calling thread; cheap when it is.
  void enter() const;

  /// cuBLASLt for this device; null when it is of no use.
  BlasHandle cublaslt();
  /// cuDNN for this device; null when it is of no use.
  DnnLibrary* cudnn();

  /// The program compiled for this device, from memory or disk when it was compiled before.
  /// Throws `internal` with the compiler's log when it does not compile.
  std::shared_ptr<const Program> program(const ProgramText& text);

  /// Takes memory from the pool, in the order of `stream`. Throws `exhausted` naming the holders
  /// when the device is full, or this process has all that it may take (memory_share.h).
  DevicePointer allocate(size_t bytes, const std::string& holder, DriverStream stream);
  void release(DevicePointer memory, DriverStream stream) noexcept;
  /// Gives unused memory of the pool back to the system.
  void trim() noexcept;
  /// "activations of bert 1.2 GiB, constants of bert 0.4 GiB", the largest first.
  std::string holders() const;
  size_t held_bytes() const;
  /// What other processes and this one leave, with what the pool keeps.
  size_t free_bytes() const;

 private:
  explicit Device(const Tables& tables) : tables_(tables) {}
  void read_info(int ordinal);
  void make_pool();
  DevicePointer take(size_t bytes, const std::string& holder, DriverStream stream);
  void charge(size_t bytes, const std::string& holder);

  struct Held {
    std::string holder;
    size_t bytes = 0;
  };

  const Tables& tables_;
  DriverDevice handle_ = 0;
  DriverContext context_ = nullptr;
  DriverPool pool_ = nullptr;
  BlasHandle cublaslt_ = nullptr;
  bool cublaslt_asked_ = false, cudnn_asked_ = false;
  DnnLibrary cudnn_;
  DeviceInfo info_;
  size_t share_ = all_memory;  // that this process may hold
  size_t charged_ = 0;         // that it holds or is about to; by memory_mutex_
  mutable std::mutex memory_mutex_, program_mutex_;
  std::map<DevicePointer, Held> held_;
  std::map<std::string, std::weak_ptr<const Program>> programs_;
};

/// The devices that a driver lists; empty when it is unusable.
std::vector<DeviceInfo> list_devices(const Tables& tables);

}  // namespace dais::cuda
