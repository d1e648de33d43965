#include <algorithm>
#include <cstring>

#include "backends/cuda/emulated/driver_state.h"

// Memory: allocation, pools, copies. A pool keeps nothing back: what is freed is free.
namespace dais::cuda::emulated {
namespace {

DeviceState& state() { return DeviceState::instance(); }

void* pointer(DevicePointer memory) { return reinterpret_cast<void*>(memory); }

DriverResult allocate(DevicePointer* memory, size_t bytes) {
  if (const DriverResult result = state().ready(); result != DriverResult::success) return result;
  if (!memory || bytes == 0) return DriverResult::invalid_value;
  *memory = reinterpret_cast<DevicePointer>(state().memory().allocate(bytes));
  return *memory ? DriverResult::success : DriverResult::out_of_memory;
}

DriverResult release(DevicePointer memory) {
  if (memory == 0) return DriverResult::success;
  return state().memory().free(pointer(memory)) ? DriverResult::success
                                                : DriverResult::invalid_value;
}

bool capturing(DriverStream stream) {
  return stream && reinterpret_cast<StreamObject*>(stream)->capture;
}

PoolObject* pool_of(DriverPool pool) {
  return state().knows(pool) ? reinterpret_cast<PoolObject*>(pool) : nullptr;
}

DriverResult allocate_from_pool(DevicePointer* memory, size_t bytes, DriverPool handle,
                                DriverStream stream) {
  PoolObject* pool = pool_of(handle);
  if (!pool) return DriverResult::invalid_handle;
  if (capturing(stream)) return DriverResult::stream_capture_unsupported;
  const std::lock_guard lock(state().mutex);
  const DriverResult result = allocate(memory, bytes);
  if (result != DriverResult::success) return result;
  state().pooled[*memory] = {pool, bytes};
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  return result;
}

DriverResult free_async(DevicePointer memory, DriverStream stream) {
  if (capturing(stream)) return DriverResult::stream_capture_unsupported;
  const std::lock_guard lock(state().mutex);
  const auto found = state().pooled.find(memory);
  if (found != state().pooled.end()) {
    found->second.first->used -= found->second.second;
    state().pooled.erase(found);
  }
  return release(memory);
}

DriverResult pool_attribute(DriverPool handle, PoolAttribute attribute, void* value, bool set) {
  PoolObject* pool = pool_of(handle);
  if (!pool || !value) return DriverResult::invalid_value;
  const std::lock_guard lock(state().mutex);
  if (attribute < PoolAttribute::release_threshold) {
    if (!set) *static_cast<int*>(value) = 1;
    return DriverResult::success;
  }
  auto& number = *static_cast<uint64_t*>(value);
  switch (attribute) {
    case PoolAttribute::release_threshold:
      (set ? pool->threshold : number) = set ? number : pool->threshold;
      break;
    case PoolAttribute::used_mem_high:
    case PoolAttribute::reserved_mem_high:
      if (set)
        pool->used_high = pool->used;
      else
        number = pool->used_high;
      break;
    default:
      if (set) return DriverResult::invalid_value;
      number = pool->used;
  }
  return DriverResult::success;
}

/// Copies `bytes`; the device's side of it must lie in one allocation.
DriverResult copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device,
                  DriverStream stream) {
  if (bytes == 0) return state().ready();
  const auto inside = [&](const void* memory) {
    return state().holds(reinterpret_cast<DevicePointer>(memory), bytes);
  };
  if ((to_device && !inside(to)) || (from_device && !inside(from)))
    return DriverResult::invalid_value;
  return submit(stream, [=] {
    std::memmove(to, from, bytes);
    return DriverResult::success;
  });
}

DriverResult fill(DevicePointer memory, size_t bytes, DriverStream stream, Work work) {
  if (bytes == 0) return state().ready();
  if (!state().holds(memory, bytes)) return DriverResult::invalid_value;
  return submit(stream, std::move(work));
}

}  // namespace

void fill_memory(DriverApi& api) {
  api.mem_get_info = [](size_t* free_bytes, size_t* total_bytes) {
    *total_bytes = state().memory().limit();
    *free_bytes = *total_bytes - std::min(*total_bytes, state().memory().used());
    return state().ready();
  };
  api.mem_alloc = allocate;
  api.mem_free = release;
  api.mem_host_alloc = [](void** memory, size_t bytes, unsigned) {
    if (!memory || bytes == 0) return DriverResult::invalid_value;
    *memory = state().pinned().allocate(bytes);
    return *memory ? DriverResult::success : DriverResult::out_of_memory;
  };
  api.mem_free_host = [](void* memory) {
    return state().pinned().free(memory) ? DriverResult::success : DriverResult::invalid_value;
  };
  api.mem_pool_create = [](DriverPool* pool, const PoolProps*) {
    auto* object = new PoolObject;
    state().learn(object);
    *pool = reinterpret_cast<DriverPool>(object);
    return DriverResult::success;
  };
  api.mem_pool_destroy = [](DriverPool pool) {
    if (!state().forget(pool)) return DriverResult::invalid_handle;
    delete reinterpret_cast<PoolObject*>(pool);
    return DriverResult::success;
  };
  api.mem_pool_trim_to = [](DriverPool pool, size_t) {
    return pool_of(pool) ? DriverResult::success : DriverResult::invalid_handle;
  };
  api.mem_pool_set_attribute = [](DriverPool pool, PoolAttribute attribute, void* value) {
    return pool_attribute(pool, attribute, value, true);
  };
  api.mem_pool_get_attribute = [](DriverPool pool, PoolAttribute attribute, void* value) {
    return pool_attribute(pool, attribute, value, false);
  };
  api.mem_alloc_from_pool_async = allocate_from_pool;
  api.mem_free_async = free_async;
  api.memcpy_htod_async = [](DevicePointer to, const void* from, size_t bytes,
                             DriverStream stream) {
    return copy(pointer(to), from, bytes, true, false, stream);
  };
  api.memcpy_dtoh_async = [](void* to, DevicePointer from, size_t bytes, DriverStream stream) {
    return copy(to, pointer(from), bytes, false, true, stream);
  };
  api.memcpy_dtod_async = [](DevicePointer to, DevicePointer from, size_t bytes,
                             DriverStream stream) {
    return copy(pointer(to), pointer(from), bytes, true, true, stream);
  };
  api.memset_d8_async = [](DevicePointer memory, unsigned char value, size_t count,
                           DriverStream stream) {
    return fill(memory, count, stream, [=] {
      std::memset(pointer(memory), value, count);
      return DriverResult::success;
    });
  };
  api.memset_d32_async = [](DevicePointer memory, unsigned value, size_t count,
                            DriverStream stream) {
    if (memory % sizeof(unsigned) != 0) return DriverResult::invalid_value;
    return fill(memory, count * sizeof(unsigned), stream, [=] {
      std::fill_n(static_cast<unsigned*>(pointer(memory)), count, value);
      return DriverResult::success;
    });
  };
}

}  // namespace dais::cuda::emulated
