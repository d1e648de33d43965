#include "stand_in.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/emulated/driver_state.h"
#include "backends/cuda/emulated/emulated.h"
#include "fake_blas.h"

namespace dais::cuda {
StandIn& StandIn::instance() {
  static StandIn one;
  return one;
}

void StandIn::complain(std::string text) { complaints_.push_back(std::move(text)); }

void StandIn::fail(Call call, int n, DriverResult result, bool sticky, int times) {
  const std::lock_guard lock(mutex_);
  failures_[static_cast<size_t>(call)] = {n, times, result, sticky};
  if (n < 0) lost_ = DriverResult::success;
}

DriverResult StandIn::injected(Call call) {
  if (lost_ != DriverResult::success) return lost_;
  const auto kind = static_cast<size_t>(call);
  ++counts_[kind];
  Failure& failure = failures_[kind];
  if (failure.left < 0) return DriverResult::success;
  if (failure.left > 0) {
    --failure.left;
    return DriverResult::success;
  }
  if (--failure.times <= 0) failure.left = -1;
  if (failure.sticky) lost_ = failure.result;
  return failure.result;
}

std::vector<std::string> StandIn::take_complaints() {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaints_, {});
}

std::vector<std::string> StandIn::leftovers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [address, block] : blocks_)
    if (!block.freed) out.push_back(std::to_string(block.bytes) + " bytes of device memory");
  const auto list = [&](const auto& all, const char* what) {
    for (size_t i = 0; i < all.size(); ++i) out.emplace_back(what);
  };
  list(streams_, "a stream");
  list(events_, "an event");
  list(modules_, "a module");
  list(graphs_, "a graph");
  list(pools_, "a memory pool");
  list(pinned_, "pinned memory");
  return out;
}

std::map<DevicePointer, StandIn::Block>::iterator StandIn::block_of(DevicePointer address) {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return blocks_.end();
  --found;
  return address < found->first + std::max<size_t>(found->second.bytes, 1) ? found : blocks_.end();
}

/// Addresses come again: where device memory was freed, the host may have put its own.
bool StandIn::on_device(const void* address) {
  const auto found = block_of(reinterpret_cast<DevicePointer>(address));
  return found != blocks_.end() && !found->second.freed;
}

bool StandIn::is_pinned(const void* address) const {
  const auto found = pinned_.upper_bound(const_cast<void*>(address));
  if (found == pinned_.begin()) return false;
  const auto& [first, bytes] = *std::prev(found);
  return static_cast<const char*>(address) < static_cast<const char*>(first) + bytes;
}

bool StandIn::inside(DevicePointer address, size_t bytes, const char* action) {
  const auto found = block_of(address);
  if (found == blocks_.end()) {
    complain(std::string(action) + " uses an address outside device memory");
    return false;
  }
  if (found->second.freed) {
    complain(std::string(action) + " uses memory after it was freed");
    return false;
  }
  if (address + bytes > found->first + found->second.bytes) {
    complain(std::string(action) + " of " + std::to_string(bytes) +
             " bytes goes beyond the end of an allocation of " +
             std::to_string(found->second.bytes));
    return false;
  }
  return true;
}

size_t StandIn::live_bytes() const {
  size_t total = 0;
  for (const auto& [address, block] : blocks_) total += block.freed ? 0 : block.bytes;
  return total;
}

bool StandIn::covers(const void* address, size_t bytes, const char* action) {
  const std::lock_guard lock(mutex_);
  return bytes == 0 || inside(reinterpret_cast<DevicePointer>(address), bytes, action);
}

void StandIn::put(DriverStream stream, std::vector<const void*> reads, void* writes,
                  std::function<DriverResult()> work) {
  const std::lock_guard lock(mutex_);
  if (streams_[stream].capturing) {
    emulated::submit(stream, std::move(work));
    return;
  }
  const Access access = access_of(stream);
  enqueue(stream, [this, access, reads = std::move(reads), writes, work = std::move(work)] {
    for (const void* read : reads)
      note(reinterpret_cast<DevicePointer>(read), access, false, "a library");
    note(reinterpret_cast<DevicePointer>(writes), access, true, "a library");
    return work();
  });
}

StandIn::Access StandIn::access_of(DriverStream stream) {
  Access out;
  out.stream = stream;
  out.at = streams_[stream].issued + 1;
  out.known = streams_[stream].known;
  for (const auto& [other, at] : host_known_) out.known[other] = std::max(out.known[other], at);
  return out;
}

bool StandIn::ordered(const Access& a, const Access& b) {
  if (a.at == 0 || b.at == 0 || a.stream == b.stream) return true;
  const auto knows = [](const Access& one, const Access& other) {
    const auto found = one.known.find(other.stream);
    return found != one.known.end() && found->second >= other.at;
  };
  return knows(a, b) || knows(b, a);
}

void StandIn::note(DevicePointer address, const Access& access, bool writes, const char* action) {
  const auto found = block_of(address);
  if (found == blocks_.end()) return;
  Block& block = found->second;
  bool fine = ordered(block.last_write, access);
  if (writes)
    for (const auto& [stream, read] : block.reads) fine = fine && ordered(read, access);
  if (!fine)
    complain(std::string(action) + " is not ordered behind another stream's use of its memory");
  if (writes) {
    block.last_write = access;
    block.reads.clear();
  } else {
    block.reads[access.stream] = access;
  }
}

DriverResult StandIn::enqueue(DriverStream stream, std::function<DriverResult()> work) {
  Stream& target = streams_[stream];
  // What a capture takes is the emulated driver's to keep.
  if (target.capturing) return work();
  ++target.issued;
  target.items.push_back({std::move(work), target.issued, nullptr});
  return DriverResult::success;
}

DriverResult StandIn::drain(DriverStream stream, uint64_t until) {
  Stream& target = streams_[stream];
  DriverResult first = DriverResult::success;
  while (!target.items.empty() && target.items.front().at <= until) {
    const Item item = std::move(target.items.front());
    target.items.pop_front();
    target.done = item.at;
    DriverResult result = DriverResult::success;
    if (item.waits) {
      const auto event = events_.find(item.waits);
      if (event != events_.end()) result = drain(event->second.stream, event->second.at);
    } else {
      result = item.work();
    }
    if (first == DriverResult::success) first = result;
  }
  return first;
}

DriverResult StandIn::drain_all() {
  DriverResult first = DriverResult::success;
  for (auto& [handle, stream] : streams_) {
    const DriverResult result = drain(handle, stream.issued);
    if (first == DriverResult::success) first = result;
    host_known_[handle] = stream.issued;
  }
  return first;
}

void StandIn::reset() {
  const std::lock_guard lock(mutex_);
  failures_ = {};
  counts_ = {};
  complaints_.clear();
  lost_ = DriverResult::success;
  blas_ = dnn_ = false;
  arch_ = 0;
  limit_ = ~size_t{0};
  blocks_.clear();
  streams_.clear();
  events_.clear();
  modules_.clear();
  graphs_.clear();
  pools_.clear();
  pinned_.clear();
  host_known_.clear();
  emulated::take_findings();
}

}  // namespace dais::cuda
