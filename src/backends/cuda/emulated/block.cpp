#include "backends/cuda/emulated/block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dais::cuda::emulated {

Block::Block() : stacks_(kMostThreads + 1) {}

Block& Block::of_this_thread() {
  thread_local Block block;
  return block;
}

const Hooks& Block::hooks() {
  static constexpr Hooks table = {
      [](const void* address, unsigned bytes, unsigned flags, const void* site) {
        of_this_thread().access(address, bytes, flags, site);
      },
      [](int predicate, Place place) { return of_this_thread().barrier(predicate, place); },
      [](unsigned mask, void* mine, WarpAction action, bool orders, Place place) {
        of_this_thread().warp(mask, mine, action, orders, place);
      },
      [](void* to, const void* from, unsigned bytes, unsigned valid, const void* site) {
        of_this_thread().copy_async({static_cast<unsigned char*>(to),
                                     static_cast<const unsigned char*>(from), bytes, valid, site,
                                     0});
      },
      [] { ++of_this_thread().current().groups; },
      [](int groups_left) { of_this_thread().wait_async(groups_left); },
      [](const char* reason, Place place) {
        of_this_thread().stop_with(
            {.kind = FindingKind::trap, .place = place, .detail = std::string(reason)});
      },
  };
  return table;
}

void Block::begin(const Grid& grid, const Reach& reach) {
  grid_ = grid;
  strands_.resize(grid.threads());
  // Sixteen bytes more, as a vector is aligned to 16 at least and shared memory should be, too.
  dynamic_.resize(grid.dynamic_bytes + 128);
  watch_.begin_launch(reach, grid.threads());
}

void Block::reset(const Index& index) {
  auto* dynamic = dynamic_.data();
  dynamic += -reinterpret_cast<uintptr_t>(dynamic) % 128;
  unsigned linear = 0;
  for (unsigned z = 0; z < grid_.block.z; ++z)
    for (unsigned y = 0; y < grid_.block.y; ++y)
      for (unsigned x = 0; x < grid_.block.x; ++x, ++linear) {
        Strand& strand = strands_[linear];
        strand.lane = {{x, y, z}, index, grid_.block, grid_.grid, linear, dynamic};
        strand.state = State::fresh;
        strand.warp_turn = 0;
        strand.groups = 0;
        strand.copies.clear();
      }
  ready_.clear();
  ready_head_ = 0;
  running_ = fresh_ = done_ = waiting_ = 0;
  barrier_count_ = 0;
  stopped_ = false;
}

bool Block::run(const Index& index, Region fixed) {
  reset(index);
  const Region dynamic{strands_[0].lane.dynamic_shared, grid_.dynamic_bytes};
  // What nobody wrote reads as NaN, or as an index far outside anything.
  std::memset(const_cast<unsigned char*>(fixed.first), 0xFF, fixed.bytes);
  std::memset(strands_[0].lane.dynamic_shared, 0xFF, dynamic.bytes);
  watch_.begin_block(fixed, dynamic);
  dais_switch_fibre(&main_, next());
  if (left_stack_) stacks_.give(std::exchange(left_stack_, nullptr));
  if (stopped_)
    for (unsigned i = 0; i < fresh_; ++i)
      if (strands_[i].stack) stacks_.give(std::exchange(strands_[i].stack, nullptr));
  watch_.counter().fold();
  return !stopped_;
}

void Block::make_ready(Strand& strand) {
  strand.state = State::ready;
  ready_.push_back(strand.lane.linear);
}

void* Block::next() {
  if (ready_head_ < ready_.size()) {
    running_ = ready_[ready_head_++];
    if (ready_head_ == ready_.size()) {
      ready_.clear();
      ready_head_ = 0;
    }
  } else if (fresh_ < strands_.size()) {
    running_ = fresh_++;
    Strand& strand = strands_[running_];
    strand.state = State::ready;
    strand.stack = stacks_.take();
    *reinterpret_cast<const Lane**>(strand.stack) = &strand.lane;
    strand.resume = Stacks::prepare(strand.stack, start_fibre);
  } else {
    return nullptr;
  }
  watch_.set_place(&current().lane);
  return current().resume;
}

void Block::start_fibre() {
  Block& block = of_this_thread();
  if (block.left_stack_) block.stacks_.give(std::exchange(block.left_stack_, nullptr));
  block.grid_.kernel->entry(block.grid_.parameters);
  block.finish();
}

void Block::switch_away() {
  const unsigned leaving = running_;
  void* entered = next();
  if (!entered) {
    explain_deadlock();
    stop();
  }
  if (running_ == leaving) return;
  dais_switch_fibre(&strands_[leaving].resume, entered);
  if (left_stack_) stacks_.give(std::exchange(left_stack_, nullptr));
}

void Block::finish() {
  Strand& strand = current();
  strand.state = State::done;
  ++done_;
  if (waiting_ > 0 && waiting_ + done_ == strands_.size()) release_barrier();
  left_stack_ = std::exchange(strand.stack, nullptr);
  void* entered = next();
  if (!entered && done_ < strands_.size()) {
    explain_deadlock();
    stop();
  }
  void* nowhere;
  dais_switch_fibre(&nowhere, entered ? entered : main_);
  __builtin_unreachable();
}

void Block::stop() {
  stopped_ = true;
  void* nowhere;
  dais_switch_fibre(&nowhere, main_);
  __builtin_unreachable();
}

void Block::stop_with(RawFinding finding) {
  watch_.report(std::move(finding));
  stop();
}

void Block::access(const void* address, unsigned bytes, unsigned flags, const void* site) {
  if (!grid_.checked || stacks_.contains(address)) return;
  const Strand& strand = current();
  if (!watch_.access(address, bytes, flags, site, {strand.lane.linear, strand.warp_turn})) stop();
}

int Block::barrier(int predicate, Place place) {
  Strand& strand = current();
  strand.predicate = predicate;
  strand.place = place;
  strand.state = State::at_barrier;
  barrier_count_ += predicate != 0;
  ++waiting_;
  if (waiting_ + done_ == strands_.size()) release_barrier();
  switch_away();
  return current().predicate;
}

void Block::release_barrier() {
  if (grid_.checked) check_barrier_places();
  for (Strand& strand : strands_) {
    if (strand.state != State::at_barrier) continue;
    strand.predicate = barrier_count_;
    make_ready(strand);
  }
  waiting_ = 0;
  barrier_count_ = 0;
  if (grid_.checked) watch_.barrier();
}

void Block::check_barrier_places() {
  const auto first = std::find_if(strands_.begin(), strands_.end(), [](const Strand& strand) {
    return strand.state == State::at_barrier;
  });
  for (const Strand& strand : strands_) {
    if (strand.state == State::done)
      stop_with({.kind = FindingKind::divergent_barrier,
                 .place = first->place,
                 .detail = "thread " + std::to_string(strand.lane.linear) +
                           " left the kernel before a barrier at which others wait"});
    if (strand.place.line != first->place.line ||
        std::strcmp(strand.place.file, first->place.file) != 0)
      stop_with({.kind = FindingKind::divergent_barrier,
                 .place = strand.place,
                 .detail = "thread " + std::to_string(strand.lane.linear) + " waits here, thread " +
                           std::to_string(first->lane.linear) + " at line " +
                           std::to_string(first->place.line)});
  }
}

void Block::warp(unsigned mask, void* mine, WarpAction action, bool orders, Place place) {
  Strand& strand = current();
  const unsigned first = strand.lane.linear / kWarp * kWarp;
  const auto lanes = std::min<unsigned>(kWarp, static_cast<unsigned>(strands_.size()) - first);
  // Lanes that do not exist take no part: the last warp of a block may be small.
  if (lanes < kWarp) mask &= (1u << lanes) - 1;
  const unsigned own = 1u << strand.lane.linear % kWarp;
  if (!(mask & own))
    stop_with({.kind = FindingKind::divergent_barrier,
               .place = place,
               .detail = "the mask of a warp-wide operation leaves out its own lane " +
                         std::to_string(strand.lane.linear % kWarp)});
  strand.mask = mask;
  strand.exchange = mine;
  strand.action = action;
  strand.place = place;
  unsigned arrived = own;
  void* passed[kWarp] = {};
  for (unsigned i = 0; i < lanes; ++i) {
    const Strand& other = strands_[first + i];
    if (!(mask >> i & 1) || (&other != &strand && (other.state != State::at_warp ||
                                                   other.mask != mask || other.action != action)))
      continue;
    arrived |= 1u << i;
    passed[i] = other.exchange;
  }
  strand.state = State::at_warp;
  if (arrived == mask) {
    if (action) action(passed, mask);
    for (unsigned i = 0; i < lanes; ++i)
      if (mask >> i & 1) {
        if (orders) ++strands_[first + i].warp_turn;
        make_ready(strands_[first + i]);
      }
  }
  switch_away();
}

void Block::copy_async(const AsyncCopy& copy) {
  Strand& strand = current();
  if (copy.valid)
    access(copy.from, copy.valid, copy.valid == copy.bytes ? 0 : kBytewise, copy.site);
  if (reinterpret_cast<uintptr_t>(copy.to) % copy.bytes)
    access(copy.to, copy.bytes, kWrite, copy.site);
  strand.copies.push_back(copy);
  strand.copies.back().group = strand.groups;
}

void Block::wait_async(int groups_left) {
  Strand& strand = current();
  size_t kept = 0;
  for (const AsyncCopy& copy : strand.copies) {
    if (copy.group >= strand.groups - groups_left) {
      strand.copies[kept++] = copy;
      continue;
    }
    access(copy.to, copy.bytes, kWrite, copy.site);
    std::memcpy(copy.to, copy.from, copy.valid);
    std::memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
  }
  strand.copies.resize(kept);
}

void Block::explain_deadlock() {
  const auto waits = [&](State state) {
    return std::find_if(strands_.begin(), strands_.end(),
                        [&](const Strand& strand) { return strand.state == state; });
  };
  const auto at_warp = waits(State::at_warp), at_barrier = waits(State::at_barrier);
  const auto first = at_warp != strands_.end() ? at_warp : at_barrier;
  std::string detail = std::to_string(strands_.size() - done_) + " of " +
                       std::to_string(strands_.size()) + " threads wait for ever: thread " +
                       std::to_string(first->lane.linear);
  if (first == at_warp) {
    detail += " in a warp-wide operation whose mask names lanes that do not come";
    if (at_barrier != strands_.end())
      detail += ", thread " + std::to_string(at_barrier->lane.linear) + " at the barrier of line " +
                std::to_string(at_barrier->place.line);
  } else {
    detail += " at a barrier";
  }
  watch_.report({.kind = FindingKind::deadlock, .place = first->place, .detail = detail});
}

}  // namespace dais::cuda::emulated
