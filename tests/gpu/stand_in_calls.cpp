// The driver's entry points as the stand-in carries them out.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/emulated/driver_state.h"
#include "backends/cuda/emulated/emulated.h"
#include "fake_blas.h"
#include "fake_dnn.h"
#include "stand_in.h"

namespace dais::cuda {
namespace {

const DriverApi& real() { return emulated::driver_api(); }

/// Whether a kernel wrote to memory is seen by this. Four sums side by side, as weights of a whole
/// network are looked through twice for each launch.
uint64_t hash_of(DevicePointer address, size_t bytes) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;
  uint64_t sums[4] = {1, 2, 3, 4};
  const auto* at = reinterpret_cast<const unsigned char*>(address);
  size_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    uint64_t words[4];
    std::memcpy(words, at + i, 32);
    for (size_t k = 0; k < 4; ++k) sums[k] = (sums[k] ^ words[k]) * kFactor;
  }
  for (; i < bytes; ++i) sums[0] = (sums[0] ^ at[i]) * kFactor;
  return ((sums[0] * kFactor ^ sums[1]) * kFactor ^ sums[2]) * kFactor ^ sums[3];
}

}  // namespace

/// The entries of the table.
struct StandInCalls {
  using Lock = std::lock_guard<std::recursive_mutex>;
  static StandIn& self() { return StandIn::instance(); }

  static DriverResult allocate(DevicePointer* memory, size_t bytes, DriverPool pool,
                               DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::allocate); result != DriverResult::success)
      return result;
    if (bytes > me.limit_ || me.live_bytes() > me.limit_ - bytes)
      return DriverResult::out_of_memory;
    const DriverResult result = real().mem_alloc_from_pool_async(memory, bytes, pool, stream);
    if (result != DriverResult::success) return result;
    // Addresses come again; what lay there is forgotten.
    for (auto at = me.blocks_.lower_bound(*memory);
         at != me.blocks_.end() && at->first < *memory + bytes;)
      at = me.blocks_.erase(at);
    me.blocks_[*memory].bytes = bytes;
    // New memory holds anything.
    std::memset(reinterpret_cast<void*>(*memory), 0xA5, bytes);
    return result;
  }

  static DriverResult memory_info(size_t* free_bytes, size_t* total_bytes) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().mem_get_info(free_bytes, total_bytes);
    if (me.limit_ == ~size_t{0}) return result;
    *total_bytes = me.limit_;
    *free_bytes = me.limit_ - std::min(me.limit_, me.live_bytes());
    return result;
  }

  static DriverResult release(DevicePointer memory, DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const auto found = me.blocks_.find(memory);
    if (found == me.blocks_.end() || found->second.freed) {
      me.complain(found == me.blocks_.end() ? "what was never allocated is freed"
                                            : "memory is freed twice");
      return DriverResult::invalid_value;
    }
    found->second.freed = true;
    const StandIn::Access access = me.access_of(stream);
    return me.enqueue(stream, [&me, memory, stream, access] {
      me.note(memory, access, true, "a release");
      return real().mem_free_async(memory, stream);
    });
  }

  static DriverResult upload(DevicePointer to, const void* from, size_t bytes,
                             DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::copy); result != DriverResult::success) return result;
    if (me.on_device(from)) {
      me.complain("a copy to the device reads device memory as the host's");
      return DriverResult::invalid_value;
    }
    if (!me.inside(to, bytes, "a copy to the device")) return DriverResult::invalid_value;
    const StandIn::Access access = me.access_of(stream);
    // Page-locked memory is read when the copy happens; other memory before the call returns.
    if (me.is_pinned(from))
      return me.enqueue(stream, [&me, to, from, bytes, stream, access] {
        me.note(to, access, true, "a copy to the device");
        return real().memcpy_htod_async(to, from, bytes, stream);
      });
    const auto* first = static_cast<const unsigned char*>(from);
    auto kept = std::make_shared<std::vector<unsigned char>>(first, first + bytes);
    return me.enqueue(stream, [&me, to, kept, stream, access] {
      me.note(to, access, true, "a copy to the device");
      return real().memcpy_htod_async(to, kept->data(), kept->size(), stream);
    });
  }

  static DriverResult download(void* to, DevicePointer from, size_t bytes, DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::copy); result != DriverResult::success) return result;
    if (me.on_device(to)) {
      me.complain("a copy from the device writes device memory as the host's");
      return DriverResult::invalid_value;
    }
    if (!me.inside(from, bytes, "a copy from the device")) return DriverResult::invalid_value;
    const StandIn::Access access = me.access_of(stream);
    return me.enqueue(stream, [&me, to, from, bytes, stream, access] {
      me.note(from, access, false, "a copy from the device");
      return real().memcpy_dtoh_async(to, from, bytes, stream);
    });
  }

  static DriverResult copy(DevicePointer to, DevicePointer from, size_t bytes,
                           DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::copy); result != DriverResult::success) return result;
    if (!me.inside(to, bytes, "a copy on the device") ||
        !me.inside(from, bytes, "a copy on the device"))
      return DriverResult::invalid_value;
    const StandIn::Access access = me.access_of(stream);
    return me.enqueue(stream, [&me, to, from, bytes, stream, access] {
      me.note(from, access, false, "a copy on the device");
      me.note(to, access, true, "a copy on the device");
      return real().memcpy_dtod_async(to, from, bytes, stream);
    });
  }

  static DriverResult fill(DevicePointer memory, unsigned char value, size_t count,
                           DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (!me.inside(memory, count, "a fill")) return DriverResult::invalid_value;
    const StandIn::Access access = me.access_of(stream);
    return me.enqueue(stream, [&me, memory, value, count, stream, access] {
      me.note(memory, access, true, "a fill");
      return real().memset_d8_async(memory, value, count, stream);
    });
  }

  /// The pieces of device memory whose addresses stand among a launch's parameters.
  static std::vector<DevicePointer> touched(const emulated::KernelInfo& kernel,
                                            const std::vector<std::vector<unsigned char>>& values) {
    StandIn& me = self();
    std::vector<DevicePointer> out;
    for (unsigned i = 0; i < kernel.parameters; ++i)
      for (size_t at = 0; at + 8 <= values[i].size(); at += 8) {
        DevicePointer word = 0;
        std::memcpy(&word, values[i].data() + at, 8);
        const auto found = me.block_of(word);
        if (found != me.blocks_.end() &&
            std::find(out.begin(), out.end(), found->first) == out.end())
          out.push_back(found->first);
      }
    return out;
  }

  static DriverResult launch(DriverFunction handle, unsigned gx, unsigned gy, unsigned gz,
                             unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             DriverStream stream, void** parameters, void** extra) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::launch); result != DriverResult::success)
      return result;
    if (me.streams_[stream].capturing)
      return real().launch_kernel(handle, gx, gy, gz, bx, by, bz, shared, stream, parameters,
                                  extra);
    const auto& kernel = *reinterpret_cast<emulated::FunctionObject*>(handle)->kernel;
    auto values = std::make_shared<std::vector<std::vector<unsigned char>>>();
    for (unsigned i = 0; i < kernel.parameters; ++i) {
      const auto* first = static_cast<const unsigned char*>(parameters[i]);
      values->emplace_back(first, first + kernel.parameter_bytes[i]);
    }
    const auto blocks = touched(kernel, *values);
    for (const DevicePointer block : blocks)
      if (me.blocks_[block].freed) {
        me.complain("a kernel gets memory after it was freed");
        return DriverResult::invalid_value;
      }
    const StandIn::Access access = me.access_of(stream);
    return me.enqueue(stream, [=, &me] {
      std::vector<uint64_t> before;
      for (const DevicePointer block : blocks)
        before.push_back(hash_of(block, me.blocks_[block].bytes));
      std::vector<void*> pointers;
      for (auto& value : *values) pointers.push_back(value.data());
      const DriverResult result = real().launch_kernel(handle, gx, gy, gz, bx, by, bz, shared,
                                                       stream, pointers.data(), extra);
      for (size_t i = 0; i < blocks.size(); ++i)
        me.note(blocks[i], access, hash_of(blocks[i], me.blocks_[blocks[i]].bytes) != before[i],
                "a kernel");
      return result;
    });
  }

  static DriverResult stream_create(DriverStream* stream, unsigned flags) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().stream_create(stream, flags);
    if (result == DriverResult::success) me.streams_[*stream] = {};
    return result;
  }

  static DriverResult stream_destroy(DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.drain(stream, me.streams_[stream].issued);
    me.streams_.erase(stream);
    return real().stream_destroy(stream);
  }

  static DriverResult stream_synchronize(DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::synchronize); result != DriverResult::success)
      return result;
    const DriverResult result = me.drain(stream, me.streams_[stream].issued);
    me.host_known_[stream] = me.streams_[stream].issued;
    const DriverResult after = real().stream_synchronize(stream);
    return result == DriverResult::success ? after : result;
  }

  static DriverResult ctx_synchronize() {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = me.drain_all();
    const DriverResult after = real().ctx_synchronize();
    return result == DriverResult::success ? after : result;
  }

  static DriverResult event_create(DriverEvent* event, unsigned flags) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().event_create(event, flags);
    if (result == DriverResult::success) me.events_[*event] = {};
    return result;
  }

  static DriverResult event_destroy(DriverEvent event) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.events_.erase(event);
    return real().event_destroy(event);
  }

  static DriverResult event_record(DriverEvent event, DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    StandIn::Access now = me.access_of(stream);
    now.known[stream] = now.at - 1;
    me.events_[event] = {stream, now.at - 1, now.known};
    return real().event_record(event, stream);
  }

  static DriverResult event_synchronize(DriverEvent event) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const StandIn::Event& found = me.events_[event];
    me.host_known_[found.stream] = std::max(me.host_known_[found.stream], found.at);
    return me.drain(found.stream, found.at);
  }

  static DriverResult stream_wait_event(DriverStream stream, DriverEvent event, unsigned) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    StandIn::Stream& target = me.streams_[stream];
    for (const auto& [other, at] : me.events_[event].known)
      target.known[other] = std::max(target.known[other], at);
    ++target.issued;
    target.items.push_back({nullptr, target.issued, event});
    return DriverResult::success;
  }

  static DriverResult begin_capture(DriverStream stream, CaptureMode mode) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().stream_begin_capture(stream, mode);
    if (result == DriverResult::success) me.streams_[stream].capturing = true;
    return result;
  }

  static DriverResult end_capture(DriverStream stream, DriverGraph* graph) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.streams_[stream].capturing = false;
    const DriverResult result = real().stream_end_capture(stream, graph);
    if (result == DriverResult::success) me.graphs_.insert(*graph);
    return result;
  }

  static DriverResult graph_instantiate(DriverGraphExec* exec, DriverGraph graph,
                                        unsigned long long flags) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().graph_instantiate(exec, graph, flags);
    if (result == DriverResult::success) me.graphs_.insert(*exec);
    return result;
  }

  static DriverResult graph_launch(DriverGraphExec exec, DriverStream stream) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    return me.enqueue(stream, [exec, stream] { return real().graph_launch(exec, stream); });
  }

  static DriverResult graph_exec_destroy(DriverGraphExec exec) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.graphs_.erase(exec);
    return real().graph_exec_destroy(exec);
  }

  static DriverResult graph_destroy(DriverGraph graph) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.graphs_.erase(graph);
    return real().graph_destroy(graph);
  }

  static DriverResult module_load(DriverModule* module, const void* image) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    if (const auto result = me.injected(Call::load); result != DriverResult::success) return result;
    const DriverResult result = real().module_load_data(module, image);
    if (result == DriverResult::success) me.modules_.insert(*module);
    return result;
  }

  static DriverResult module_unload(DriverModule module) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.modules_.erase(module);
    return real().module_unload(module);
  }

  static DriverResult host_alloc(void** memory, size_t bytes, unsigned flags) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().mem_host_alloc(memory, bytes, flags);
    if (result == DriverResult::success) me.pinned_[*memory] = bytes;
    return result;
  }

  static DriverResult free_host(void* memory) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.pinned_.erase(memory);
    return real().mem_free_host(memory);
  }

  static DriverResult device_attribute(int* value, DeviceAttribute which, DriverDevice device) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().device_get_attribute(value, which, device);
    if (me.arch_ != 0 && which == DeviceAttribute::compute_capability_major) *value = me.arch_ / 10;
    if (me.arch_ != 0 && which == DeviceAttribute::compute_capability_minor) *value = me.arch_ % 10;
    return result;
  }

  static DriverResult pool_create(DriverPool* pool, const PoolProps* props) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    const DriverResult result = real().mem_pool_create(pool, props);
    if (result == DriverResult::success) me.pools_.insert(*pool);
    return result;
  }

  static DriverResult pool_destroy(DriverPool pool) {
    StandIn& me = self();
    const Lock lock(me.mutex_);
    me.pools_.erase(pool);
    return real().mem_pool_destroy(pool);
  }
};

const Tables& StandIn::tables() {
  tables_ = emulated_tables();
  if (blas_) tables_.cublaslt = fake_cublaslt();
  if (dnn_) tables_.cudnn = fake_cudnn();
  DriverApi& api = tables_.driver.api;
  api.mem_alloc_from_pool_async = StandInCalls::allocate;
  api.mem_get_info = StandInCalls::memory_info;
  api.mem_free_async = StandInCalls::release;
  api.memcpy_htod_async = StandInCalls::upload;
  api.memcpy_dtoh_async = StandInCalls::download;
  api.memcpy_dtod_async = StandInCalls::copy;
  api.memset_d8_async = StandInCalls::fill;
  api.launch_kernel = StandInCalls::launch;
  api.stream_create = StandInCalls::stream_create;
  api.stream_destroy = StandInCalls::stream_destroy;
  api.stream_synchronize = StandInCalls::stream_synchronize;
  api.ctx_synchronize = StandInCalls::ctx_synchronize;
  api.event_create = StandInCalls::event_create;
  api.event_destroy = StandInCalls::event_destroy;
  api.event_record = StandInCalls::event_record;
  api.event_synchronize = StandInCalls::event_synchronize;
  api.stream_wait_event = StandInCalls::stream_wait_event;
  api.stream_begin_capture = StandInCalls::begin_capture;
  api.stream_end_capture = StandInCalls::end_capture;
  api.graph_instantiate = StandInCalls::graph_instantiate;
  api.graph_launch = StandInCalls::graph_launch;
  api.graph_exec_destroy = StandInCalls::graph_exec_destroy;
  api.graph_destroy = StandInCalls::graph_destroy;
  api.module_load_data = StandInCalls::module_load;
  api.module_unload = StandInCalls::module_unload;
  api.mem_host_alloc = StandInCalls::host_alloc;
  api.mem_free_host = StandInCalls::free_host;
  api.device_get_attribute = StandInCalls::device_attribute;
  api.mem_pool_create = StandInCalls::pool_create;
  api.mem_pool_destroy = StandInCalls::pool_destroy;
  return tables_;
}

}  // namespace dais::cuda
