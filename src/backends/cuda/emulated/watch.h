#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/emulated/finding.h"
#include "backends/cuda/emulated/memory.h"
#include "backends/cuda/emulated/traffic.h"

namespace dais::cuda::emulated {

/// Which thread accesses, and when, counted in barriers that it and its warp have passed.
struct Accessor {
  unsigned thread;
  uint32_t warp_turn;  ///< __syncwarp calls that its lane has passed in this launch
};

/// Finds the races and the reads of unwritten bytes in one range of shared memory.
///
/// Two accesses of a byte by different threads, one of them writing and not both atomic, race
/// unless a barrier of the block lies between them, or, for lanes of one warp, a __syncwarp.
class SharedShadow {
 public:
  /// A new block begins: nothing is written, nothing accessed.
  void begin(const unsigned char* first, size_t bytes, uint32_t epoch);
  bool contains(const unsigned char* from, size_t count) const {
    return Region{first_, bytes_}.contains(from, count);
  }
  struct Verdict {
    bool unwritten = false;
    const void* raced_with = nullptr;
    unsigned other_thread = 0;
    bool other_wrote = false;
  };
  Verdict access(const unsigned char* address, unsigned bytes, unsigned flags, Accessor by,
                 uint32_t epoch, const void* site);

 private:
  static constexpr uint16_t kOneWarp = 0x8000, kManyWarps = 0xffff;
  /// The last write and the last reads of a byte. Epochs grow from block to block, so that what
  /// another block left behind is seen to be old.
  struct Cell {
    uint32_t write_epoch, read_epoch, write_turn, read_turn;
    uint16_t writer, reader;  ///< thread; a reader can be kOneWarp + warp, or kManyWarps
    bool atomic;
    const void *write_site, *read_site;
  };
  static bool ordered(unsigned thread, uint32_t turn, Accessor by) {
    return thread / kWarp == by.thread / kWarp && turn < by.warp_turn;
  }
  bool read_races(const Cell& cell, Accessor by) const;
  void note_read(Cell& cell, Accessor by, uint32_t epoch, const void* site);

  const unsigned char* first_ = nullptr;
  size_t bytes_ = 0;
  uint32_t block_epoch_ = 0;
  std::vector<Cell> cells_;
};

/// What the threads of a launch may touch besides shared memory and their own stacks.
struct Reach {
  const Memory* memory = nullptr;  ///< outlives the launch; tells about other addresses
  /// Device memory and the host's pinned memory, sorted by address.
  std::shared_ptr<const std::vector<Region>> regions;
  Region module;  ///< the data segments of the kernel's module
};

/// Looks at every access of the blocks that one operating-system thread runs. Owned by it.
class Watch {
 public:
  void begin_launch(const Reach& reach, unsigned threads);
  void end_launch() { reach_ = {}; }
  /// `fixed`: the module's __shared__ variables of this thread; `dynamic`: extern __shared__.
  void begin_block(Region fixed, Region dynamic);
  void barrier();

  /// Before the access. False: the block cannot go on.
  bool access(const void* address, unsigned bytes, unsigned flags, const void* site, Accessor by);

  /// Adds a finding, or counts it when there is one of that kind at that place.
  void report(RawFinding finding);

  std::vector<RawFinding> take_findings();
  Traffic take_traffic() { return counter_.take(); }
  TrafficCounter& counter() { return counter_; }
  /// Where the running thread is, for the text of findings: "block (1, 0, 0), thread (3, 0, 0)".
  void set_place(const Lane* lane) { lane_ = lane; }

 private:
  const Region* region_of(const unsigned char* at, unsigned bytes, const void* site);
  bool shared_access(SharedShadow& shadow, const unsigned char* at, unsigned bytes, unsigned flags,
                     const void* site, Accessor by);
  std::string where() const;

  Reach reach_;
  SharedShadow fixed_, dynamic_;
  uint32_t epoch_ = 1;
  TrafficCounter counter_;
  std::vector<RawFinding> findings_;
  const Lane* lane_ = nullptr;
  static constexpr size_t kRemembered = 64;
  const Region* last_[kRemembered] = {};  ///< by site: the region that it touched last
};

}  // namespace dais::cuda::emulated
