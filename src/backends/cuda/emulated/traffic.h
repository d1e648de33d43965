#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulated/text/emulated_abi.h"

namespace dais::cuda::emulated {

/// Requests of one kind. A request is what the lanes of a warp access by one instruction. Lanes run
/// one after another here, so the n-th time that a lane passes an instruction since the last
/// barrier is taken to be one request with the n-th time of the other lanes.
struct GlobalTraffic {
  uint64_t requests = 0;
  uint64_t sectors = 0;  ///< 32-byte pieces touched, summed over requests
  uint64_t ideal = 0;    ///< the fewest sectors that hold as many different bytes
  uint64_t bytes = 0;    ///< asked for by the lanes
  /// Of the bytes that move, how many were needed: 1 is fully coalesced.
  double efficiency() const {
    return sectors ? static_cast<double>(ideal) / static_cast<double>(sectors) : 1;
  }
};

struct SharedTraffic {
  uint64_t requests = 0;
  uint64_t passes = 0;     ///< in which the 32 banks of 4 bytes serve the requests
  uint64_t conflicts = 0;  ///< passes beyond those that requests of their width need
};

/// One instruction of a kernel.
struct SiteTraffic {
  const void* site = nullptr;
  bool shared = false, write = false;
  uint64_t requests = 0, cost = 0, ideal = 0;  ///< cost: sectors or passes
};

struct Traffic {
  GlobalTraffic reads, writes, atomics;
  SharedTraffic shared;
  uint64_t barriers = 0;  ///< summed over blocks
  std::vector<SiteTraffic> sites;
  void add(const Traffic& other);
};

/// Groups the accesses of one block into requests.
class TrafficCounter {
 public:
  void begin(unsigned threads);
  void record(unsigned thread, bool shared, const void* address, unsigned bytes, unsigned flags,
              const void* site);
  /// All threads passed a barrier, or the block ended: no request spans this point.
  void fold();
  void count_barrier() { ++total_.barriers; }
  /// What was counted since the last call.
  Traffic take();

 private:
  struct Request {
    unsigned lanes = 0;  ///< mask
    unsigned bytes = 0;
    std::array<uint64_t, kWarp> address;
  };
  struct Site {
    unsigned flags = 0;
    bool shared = false;
    std::array<uint32_t, kWarp> passed{};  ///< how often each lane passed
    std::vector<Request> requests;
  };
  using Sites = std::unordered_map<uint64_t, Site>;

  void close(const Site& site, const Request& request, SiteTraffic& to);

  std::vector<Sites> warps_;
  std::unordered_map<uint64_t, SiteTraffic> sites_;
  Traffic total_;
};

}  // namespace dais::cuda::emulated
