#include "backends/cuda/emulated/traffic.h"

#include <algorithm>
#include <utility>

namespace dais::cuda::emulated {
namespace {

constexpr uint64_t kSector = 32, kBankBytes = 4, kBanks = 32;

/// The different units of `size` bytes that a request touches, sorted.
template <typename Request>
size_t distinct(const Request& request, unsigned first, unsigned last, uint64_t size,
                std::vector<uint64_t>& units) {
  units.clear();
  for (unsigned lane = first; lane < last; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const uint64_t from = request.address[lane] / size;
    const uint64_t to = (request.address[lane] + request.bytes - 1) / size;
    for (uint64_t unit = from; unit <= to; ++unit) units.push_back(unit);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units.size();
}

/// Passes that the banks need: wide accesses are served half a warp or a quarter of it at a time.
template <typename Request>
void bank_passes(const Request& request, uint64_t& passes, uint64_t& needed,
                 std::vector<uint64_t>& words) {
  const unsigned lanes = request.bytes <= 4 ? 32 : request.bytes <= 8 ? 16 : 8;
  for (unsigned first = 0; first < kWarp; first += lanes) {
    if (!distinct(request, first, first + lanes, kBankBytes, words)) continue;
    std::array<unsigned, kBanks> load{};
    for (uint64_t word : words) ++load[word % kBanks];
    passes += *std::max_element(load.begin(), load.end());
    ++needed;
  }
}

template <typename T>
void add_global(GlobalTraffic& to, const T& from) {
  to.requests += from.requests;
  to.sectors += from.sectors;
  to.ideal += from.ideal;
  to.bytes += from.bytes;
}

}  // namespace

void Traffic::add(const Traffic& other) {
  add_global(reads, other.reads);
  add_global(writes, other.writes);
  add_global(atomics, other.atomics);
  shared.requests += other.shared.requests;
  shared.passes += other.shared.passes;
  shared.conflicts += other.shared.conflicts;
  barriers += other.barriers;
  for (const SiteTraffic& site : other.sites) {
    const auto same = std::find_if(sites.begin(), sites.end(), [&](const SiteTraffic& known) {
      return known.site == site.site && known.shared == site.shared && known.write == site.write;
    });
    if (same == sites.end()) {
      sites.push_back(site);
    } else {
      same->requests += site.requests;
      same->cost += site.cost;
      same->ideal += site.ideal;
    }
  }
}

void TrafficCounter::begin(unsigned threads) { warps_.resize((threads + kWarp - 1) / kWarp); }

void TrafficCounter::record(unsigned thread, bool shared, const void* address, unsigned bytes,
                            unsigned flags, const void* site) {
  const uint64_t key = reinterpret_cast<uint64_t>(site) << 3 | (flags & 3) << 1 | (shared ? 1 : 0);
  Site& at = warps_[thread / kWarp][key];
  at.flags = flags;
  at.shared = shared;
  const unsigned lane = thread % kWarp;
  const uint32_t turn = at.passed[lane]++;
  if (at.requests.size() <= turn) at.requests.resize(turn + 1);
  Request& request = at.requests[turn];
  request.lanes |= 1u << lane;
  request.bytes = std::max(request.bytes, bytes);
  request.address[lane] = reinterpret_cast<uint64_t>(address);
}

void TrafficCounter::close(const Site& site, const Request& request, SiteTraffic& to) {
  thread_local std::vector<uint64_t> units;
  ++to.requests;
  if (site.shared) {
    uint64_t passes = 0, needed = 0;
    bank_passes(request, passes, needed, units);
    to.cost += passes;
    to.ideal += needed;
    ++total_.shared.requests;
    total_.shared.passes += passes;
    total_.shared.conflicts += passes - needed;
    return;
  }
  GlobalTraffic& kind = site.flags & kAtomic  ? total_.atomics
                        : site.flags & kWrite ? total_.writes
                                              : total_.reads;
  const uint64_t sectors = distinct(request, 0, kWarp, kSector, units);
  const uint64_t bytes = distinct(request, 0, kWarp, 1, units);
  const uint64_t ideal = (bytes + kSector - 1) / kSector;
  to.cost += sectors;
  to.ideal += ideal;
  ++kind.requests;
  kind.sectors += sectors;
  kind.ideal += ideal;
  kind.bytes += uint64_t{request.bytes} * static_cast<unsigned>(__builtin_popcount(request.lanes));
}

void TrafficCounter::fold() {
  for (Sites& sites : warps_)
    for (auto& [key, site] : sites) {
      if (site.requests.empty()) continue;
      SiteTraffic& to = sites_[key];
      to.site = reinterpret_cast<const void*>(key >> 3);
      to.shared = site.shared;
      to.write = site.flags & kWrite;
      for (const Request& request : site.requests) close(site, request, to);
      site.requests.clear();
      site.passed.fill(0);
    }
}

Traffic TrafficCounter::take() {
  fold();
  for (const auto& [key, site] : sites_) total_.sites.push_back(site);
  sites_.clear();
  warps_.clear();
  return std::exchange(total_, {});
}

}  // namespace dais::cuda::emulated
