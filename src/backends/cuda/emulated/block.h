#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backends/cuda/emulated/fibre.h"
#include "backends/cuda/emulated/watch.h"

namespace dais::cuda::emulated {

inline constexpr unsigned kMostThreads = 1024;

/// What all blocks of a launch have in common.
struct Grid {
  const KernelInfo* kernel = nullptr;
  void** parameters = nullptr;
  Index grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned dynamic_bytes = 0;
  bool checked = false;
  unsigned threads() const { return block.x * block.y * block.z; }
};

/// Runs the blocks that one operating-system thread takes, one after another. Every CUDA thread is
/// a fibre: it runs until it waits for others (a barrier, a warp-wide step) or ends, then the next
/// one goes on. Threads of lower number go first, so that a run is the same each time.
class Block {
 public:
  Block();
  /// The one of the calling thread.
  static Block& of_this_thread();

  void begin(const Grid& grid, const Reach& reach);
  /// `fixed`: the module's shared variables of this thread. False: the block was stopped.
  bool run(const Index& index, Region fixed);
  Watch& watch() { return watch_; }

  static const Hooks& hooks();

 private:
  enum class State : uint8_t { fresh, ready, at_barrier, at_warp, done };
  struct AsyncCopy {
    unsigned char* to;
    const unsigned char* from;
    unsigned bytes, valid;
    const void* site;
    int group;
  };
  /// One CUDA thread.
  struct Strand {
    Lane lane;
    unsigned char* stack = nullptr;
    void* resume = nullptr;
    State state = State::fresh;
    int predicate = 0;
    Place place = {nullptr, 0};
    unsigned mask = 0;
    void* exchange = nullptr;
    WarpAction action = nullptr;
    uint32_t warp_turn = 0;
    std::vector<AsyncCopy> copies;
    int groups = 0;  ///< of copies that were committed
  };

  static void start_fibre();
  void access(const void* address, unsigned bytes, unsigned flags, const void* site);
  int barrier(int predicate, Place place);
  void release_barrier();
  void warp(unsigned mask, void* mine, WarpAction action, bool orders, Place place);
  void copy_async(const AsyncCopy& copy);
  void wait_async(int groups_left);
  void check_barrier_places();
  void explain_deadlock();

  Strand& current() { return strands_[running_]; }
  void reset(const Index& index);
  void make_ready(Strand& strand);
  /// Leaves the running thread, which waits, for the next that can go on.
  void switch_away();
  /// Takes the next thread that can go on and returns where; null: none.
  void* next();
  [[noreturn]] void finish();
  /// Gives the block up from inside one of its threads.
  [[noreturn]] void stop();
  void stop_with(RawFinding finding);

  Grid grid_;
  Stacks stacks_;
  Watch watch_;
  std::vector<Strand> strands_;
  std::vector<unsigned> ready_;
  size_t ready_head_ = 0;
  unsigned running_ = 0, fresh_ = 0, done_ = 0, waiting_ = 0;
  int barrier_count_ = 0;
  unsigned char* left_stack_ = nullptr;  ///< of a thread that ended: free once another runs
  void* main_ = nullptr;
  bool stopped_ = false;
  std::vector<unsigned char> dynamic_;
};

}  // namespace dais::cuda::emulated
