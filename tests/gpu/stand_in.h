#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/tables.h"

namespace dais::cuda {

/// Calls that can be made to fail.
enum class Call { allocate, launch, copy, synchronize, load };

/// A driver for tests: the emulated one behind checks of how it is used. Work of a stream is done
/// as late as the rules allow, on a synchronisation, so that what reads too early reads old bytes.
/// It complains of
///  - memory used after it was freed, freed twice, or beyond its end;
///  - copies whose addresses are of the wrong side;
///  - two streams at one piece of memory, one writing, that nothing orders;
///  - what is left when a test ends.
/// One at a time; any thread may call the tables.
class StandIn {
 public:
  static StandIn& instance();

  /// Forgets all failures and complaints. What is left from before is no longer looked for.
  void reset();
  const Tables& tables();
  /// Other libraries of the tests: with cuBLASLt, from the next tables() on.
  void use_blas(bool use) { blas_ = use; }
  /// From now on it says that it has that compute capability (90 for 9.0; 0: the emulated one's).
  void set_arch(int arch) { arch_ = arch; }
  /// The same with cuDNN.
  void use_dnn(bool use) { dnn_ = use; }

  /// The n-th call of that kind from now on (0: the next) gives `result`, and so do those after it
  /// until there were `times`; `sticky`: so does every call of any kind, as on a lost device.
  void fail(Call call, int n, DriverResult result, bool sticky = false, int times = 1);
  /// From now on there is so much memory, of what the tests allocate.
  void limit_memory(size_t bytes) { limit_ = bytes; }
  /// How many calls of that kind there were since reset().
  int calls(Call call) const { return counts_.at(static_cast<size_t>(call)); }

  /// For libraries of the tests: whether live device memory holds so many bytes from the address
  /// on; complains if not.
  bool covers(const void* address, size_t bytes, const char* action);
  /// Their work: reads and writes these pieces of memory when the stream gets there.
  void put(DriverStream stream, std::vector<const void*> reads, void* writes,
           std::function<DriverResult()> work);

  std::vector<std::string> take_complaints();
  /// One line for each thing that is still allocated or loaded.
  std::vector<std::string> leftovers() const;

 private:
  friend struct StandInCalls;

  using Clock = std::map<DriverStream, uint64_t>;
  struct Access {
    DriverStream stream = nullptr;
    uint64_t at = 0;
    Clock known;
  };
  struct Block {
    size_t bytes = 0;
    bool freed = false;
    Access last_write;
    std::map<DriverStream, Access> reads;
  };
  struct Item {
    std::function<DriverResult()> work;
    uint64_t at = 0;
    DriverEvent waits = nullptr;  ///< an event of another stream
  };
  struct Stream {
    std::deque<Item> items;
    uint64_t issued = 0, done = 0;
    Clock known;
    bool capturing = false;
  };
  struct Event {
    DriverStream stream = nullptr;
    uint64_t at = 0;
    Clock known;
  };

  void complain(std::string text);
  /// What the call gives instead of running; `success`: it runs.
  DriverResult injected(Call call);
  std::map<DevicePointer, Block>::iterator block_of(DevicePointer address);
  /// Whether `bytes` at the address lie in live memory; complains if not.
  bool inside(DevicePointer address, size_t bytes, const char* action);
  bool on_device(const void* address);
  bool is_pinned(const void* address) const;
  Access access_of(DriverStream stream);
  void note(DevicePointer address, const Access& access, bool writes, const char* action);
  DriverResult enqueue(DriverStream stream, std::function<DriverResult()> work);
  DriverResult drain(DriverStream stream, uint64_t until);
  DriverResult drain_all();
  static bool ordered(const Access& a, const Access& b);

  mutable std::recursive_mutex mutex_;
  Tables tables_;
  std::map<DevicePointer, Block> blocks_;
  std::map<DriverStream, Stream> streams_;
  std::map<DriverEvent, Event> events_;
  std::set<void*> modules_, graphs_, pools_;
  std::map<void*, size_t> pinned_;  ///< and bytes
  Clock host_known_;
  std::vector<std::string> complaints_;
  std::array<int, 5> counts_{};
  struct Failure {
    int left = -1, times = 0;
    DriverResult result = DriverResult::success;
    bool sticky = false;
  };
  std::array<Failure, 5> failures_{};
  DriverResult lost_ = DriverResult::success;
  bool blas_ = false, dnn_ = false;
  int arch_ = 0;
  size_t limit_ = ~size_t{0};
  size_t live_bytes() const;
};

}  // namespace dais::cuda
