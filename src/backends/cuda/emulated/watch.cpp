#include "backends/cuda/emulated/watch.h"

#include <algorithm>
#include <utility>

namespace dais::cuda::emulated {
namespace {

std::string triple(const Index& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

std::string what(unsigned bytes, unsigned flags) {
  const char* kind = flags & kAtomic  ? "atomic operation on "
                     : flags & kWrite ? "write of "
                                      : "read of ";
  return kind + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace

void SharedShadow::begin(const unsigned char* first, size_t bytes, uint32_t epoch) {
  first_ = first;
  bytes_ = bytes;
  block_epoch_ = epoch;
  if (cells_.size() < bytes) cells_.resize(bytes);
}

bool SharedShadow::read_races(const Cell& cell, Accessor by) const {
  if (cell.reader == kManyWarps) return true;
  if (cell.reader & kOneWarp)
    return (cell.reader & ~kOneWarp) != by.thread / kWarp || cell.read_turn >= by.warp_turn;
  return cell.reader != by.thread && !ordered(cell.reader, cell.read_turn, by);
}

void SharedShadow::note_read(Cell& cell, Accessor by, uint32_t epoch, const void* site) {
  const unsigned warp = by.thread / kWarp;
  if (cell.read_epoch != epoch) {
    cell.reader = static_cast<uint16_t>(by.thread);
  } else if (cell.reader & kOneWarp) {
    if (cell.reader != kManyWarps && (cell.reader & ~kOneWarp) != warp) cell.reader = kManyWarps;
  } else if (cell.reader != by.thread) {
    cell.reader = cell.reader / kWarp == warp ? static_cast<uint16_t>(kOneWarp + warp) : kManyWarps;
  }
  cell.read_epoch = epoch;
  cell.read_turn = by.warp_turn;
  cell.read_site = site;
}

SharedShadow::Verdict SharedShadow::access(const unsigned char* address, unsigned bytes,
                                           unsigned flags, Accessor by, uint32_t epoch,
                                           const void* site) {
  Verdict verdict;
  const bool writes = flags & kWrite, atomic = flags & kAtomic;
  for (unsigned i = 0; i < bytes; ++i) {
    Cell& cell = cells_[static_cast<size_t>(address - first_) + i];
    const bool written_now = cell.write_epoch == epoch;
    if ((!writes || atomic) && cell.write_epoch < block_epoch_) verdict.unwritten = true;
    if (written_now && cell.writer != by.thread && !(atomic && cell.atomic) &&
        !ordered(cell.writer, cell.write_turn, by)) {
      verdict = {verdict.unwritten, cell.write_site, cell.writer, true};
    } else if (writes && !atomic && cell.read_epoch == epoch && read_races(cell, by)) {
      verdict = {verdict.unwritten, cell.read_site, cell.reader, false};
    }
    if (!writes) {
      note_read(cell, by, epoch, site);
      continue;
    }
    cell.write_epoch = epoch;
    cell.write_turn = by.warp_turn;
    cell.writer = static_cast<uint16_t>(by.thread);
    cell.atomic = atomic;
    cell.write_site = site;
  }
  return verdict;
}

void Watch::begin_launch(const Reach& reach, unsigned threads) {
  reach_ = reach;
  std::fill(std::begin(last_), std::end(last_), nullptr);
  counter_.begin(threads);
}

void Watch::begin_block(Region fixed, Region dynamic) {
  ++epoch_;
  fixed_.begin(fixed.first, fixed.bytes, epoch_);
  dynamic_.begin(dynamic.first, dynamic.bytes, epoch_);
}

void Watch::barrier() {
  ++epoch_;
  counter_.count_barrier();
  counter_.fold();
}

const Region* Watch::region_of(const unsigned char* at, unsigned bytes, const void* site) {
  const Region*& last = last_[(reinterpret_cast<uintptr_t>(site) >> 2) % kRemembered];
  if (last && last->contains(at, bytes)) return last;
  auto next = std::upper_bound(
      reach_.regions->begin(), reach_.regions->end(), at,
      [](const unsigned char* address, const Region& region) { return address < region.first; });
  if (next == reach_.regions->begin()) return nullptr;
  const Region& region = *--next;
  if (!region.contains(at, bytes)) return nullptr;
  last = &region;
  return last;
}

bool Watch::shared_access(SharedShadow& shadow, const unsigned char* at, unsigned bytes,
                          unsigned flags, const void* site, Accessor by) {
  const SharedShadow::Verdict verdict = shadow.access(at, bytes, flags, by, epoch_, site);
  if (verdict.unwritten)
    report({.kind = FindingKind::uninitialised,
            .site = site,
            .detail = what(bytes, flags) + " that no thread of the block has written; " + where()});
  if (verdict.raced_with) {
    const std::string other = verdict.other_wrote
                                  ? "a write by thread " + std::to_string(verdict.other_thread)
                                  : std::string("a read by another thread");
    report({.kind = FindingKind::race,
            .site = site,
            .other_site = verdict.raced_with,
            .detail = what(bytes, flags) + " unordered with " + other + "; " + where()});
  }
  if (!(flags & kAtomic)) counter_.record(by.thread, true, at, bytes, flags, site);
  return true;
}

bool Watch::access(const void* address, unsigned bytes, unsigned flags, const void* site,
                   Accessor by) {
  const auto* at = static_cast<const unsigned char*>(address);
  if (!(flags & kBytewise) && bytes > 1 && reinterpret_cast<uintptr_t>(at) % bytes != 0) {
    report({.kind = FindingKind::misaligned,
            .site = site,
            .detail = what(bytes, flags) + " at an address that is " +
                      std::to_string(reinterpret_cast<uintptr_t>(at) % bytes) +
                      " bytes beyond a multiple of its size; " + where()});
    return false;
  }
  if (fixed_.contains(at, bytes)) return shared_access(fixed_, at, bytes, flags, site, by);
  if (dynamic_.contains(at, bytes)) return shared_access(dynamic_, at, bytes, flags, site, by);
  if (region_of(at, bytes, site)) {
    counter_.record(by.thread, false, at, bytes, flags, site);
    return true;
  }
  if (reach_.module.contains(at, bytes)) return true;
  report({.kind = FindingKind::out_of_bounds,
          .site = site,
          .detail = what(bytes, flags) + ", " + reach_.memory->describe(at) + "; " + where()});
  return false;
}

std::string Watch::where() const {
  if (!lane_) return "no thread";
  return "block " + triple(lane_->block) + ", thread " + triple(lane_->thread);
}

void Watch::report(RawFinding finding) {
  for (RawFinding& known : findings_)
    if (known.kind == finding.kind && known.site == finding.site &&
        known.place.file == finding.place.file && known.place.line == finding.place.line) {
      ++known.count;
      return;
    }
  findings_.push_back(std::move(finding));
}

std::vector<RawFinding> Watch::take_findings() { return std::exchange(findings_, {}); }

}  // namespace dais::cuda::emulated
