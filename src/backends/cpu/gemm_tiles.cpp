#include "backends/cpu/gemm_tiles.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "backends/cpu/gemm.h"
#include "base/threads.h"

namespace dais {

namespace amx {
int64_t gemm_tiles_scratch();
void gemm_tiles_begin();
void gemm_tiles_end();
void gemm_tiles_cut(const cpu::GemmBlock&, const cpu::GemmPart&, uint16_t*);
bool gemm_tiles_run(const cpu::GemmBlock&, const cpu::GemmPart&, int64_t, int64_t, uint16_t*);
}  // namespace amx

namespace cpu {
namespace {

constexpr int64_t kMaxGroups = 64, kMaxLanes = 16;
/// Panels for which it pays that one more thread cuts up the same rows of A.
constexpr int64_t kLeastPanels = 6;
constexpr int64_t kGroupPanels = 2;

int64_t parts_of(int64_t count, int64_t most) { return (count + most - 1) / most; }

/// Bands of rows that follow each other; of each all turns of the depth, of each all groups of
/// panels. Threads take items in this order. A group waits for its own turn before.
struct Lane {
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done[kMaxGroups] = {};  ///< turns of each group, over all bands
  int64_t first_band = 0, bands = 0;
};

/// Rarely has to wait, and then for another thread that is at work.
void await(const std::atomic<int64_t>& done, int64_t turns) {
  for (int spins = 0; done.load(std::memory_order_acquire) < turns; ++spins)
    if (spins < 1000)
      __builtin_ia32_pause();
    else
      std::this_thread::yield();
}

class TileProduct {
 public:
  TileProduct(const GemmBlock& block, int64_t threads)
      : block_(block),
        threads_(threads),
        strips_(parts_of(block.rows, kTileStrip)),
        panels_(parts_of(block.columns, 32)) {
    const int64_t across = std::clamp<int64_t>(panels_ / kLeastPanels, 1, threads);
    bands_ = std::max(parts_of(strips_, kTileRowBlock / kTileStrip),
                      std::min(strips_, threads / across));
    const int64_t rows = parts_of(strips_, bands_) * kTileStrip;
    stretches_ = parts_of(block.depth, kTileStretch);
    turns_ = parts_of(stretches_, std::max<int64_t>(kTileHeld / rows / kTileStretch, 1));
    groups_ = threads == 1 ? 1 : std::min(kMaxGroups, parts_of(panels_, kGroupPanels));
    lanes_ = std::min({kMaxLanes, bands_, threads});
    for (int64_t i = 0; i < lanes_; ++i) {
      lane_[i].first_band = bands_ * i / lanes_;
      lane_[i].bands = bands_ * (i + 1) / lanes_ - lane_[i].first_band;
    }
  }

  bool run() {
    parallel_for(threads_, 1, [&](int64_t first, int64_t last) {
      for (int64_t worker = first; worker < last; ++worker) work(worker * lanes_ / threads_);
    });
    return !broken_.load();
  }

 private:
  /// Takes items of one lane until none is left, then of the others.
  void work(int64_t lane) {
    auto* scratch = reinterpret_cast<uint16_t*>(gemm_tiles_memory());
    amx::gemm_tiles_begin();
    for (int64_t i = 0; i < lanes_; ++i) work_on(lane_[(lane + i) % lanes_], scratch);
    amx::gemm_tiles_end();
  }

  void work_on(Lane& lane, uint16_t* scratch) {
    int64_t held = -1;
    for (;;) {
      const int64_t item = lane.next.fetch_add(1);
      const int64_t turn = item / groups_, group = item % groups_;
      if (turn >= lane.bands * turns_) return;
      const GemmPart part = part_of(lane.first_band + turn / turns_, turn % turns_);
      if (turn != held) amx::gemm_tiles_cut(block_, part, scratch);
      held = turn;
      await(lane.done[group], turn);
      if (!amx::gemm_tiles_run(block_, part, panels_ * group / groups_,
                               panels_ * (group + 1) / groups_, scratch))
        broken_.store(true);
      lane.done[group].store(turn + 1, std::memory_order_release);
    }
  }

  GemmPart part_of(int64_t band, int64_t turn) const {
    return {.m0 = strips_ * band / bands_ * kTileStrip,
            .m1 = std::min(strips_ * (band + 1) / bands_ * kTileStrip, block_.rows),
            .k0 = stretches_ * turn / turns_ * kTileStretch,
            .k1 = std::min(stretches_ * (turn + 1) / turns_ * kTileStretch, block_.depth)};
  }

  const GemmBlock& block_;
  int64_t threads_, strips_, panels_, bands_, stretches_, turns_, groups_, lanes_;
  Lane lane_[kMaxLanes];
  std::atomic<bool> broken_{false};
};

}  // namespace

float* gemm_tiles_memory() {
  thread_local const PageMemory memory(static_cast<size_t>(amx::gemm_tiles_scratch()));
  return memory.as<float>();
}

bool gemm_on_tiles(const GemmBlock& block, int64_t threads) {
  return TileProduct(block, threads).run();
}

}  // namespace cpu
}  // namespace dais
