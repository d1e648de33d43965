#include <algorithm>
#include <cstring>

#include "backends/cuda/emulated/driver_state.h"
#include "base/error.h"

// Modules, functions and launches.
namespace dais::cuda::emulated {
namespace {

constexpr int kMostDynamicBytes = 163 * 1024;

DeviceState& state() { return DeviceState::instance(); }

ModuleObject* object(DriverModule module) { return reinterpret_cast<ModuleObject*>(module); }

DriverResult load(DriverModule* module, const void* image) {
  if (const DriverResult result = state().ready(); result != DriverResult::success) return result;
  const size_t bytes = image ? image_bytes(image) : 0;
  if (bytes == 0) return DriverResult::invalid_image;
  try {
    auto made = std::make_unique<ModuleObject>();
    made->module = Module::load({static_cast<const char*>(image), bytes});
    state().learn(made.get());
    *module = reinterpret_cast<DriverModule>(made.release());
    return DriverResult::success;
  } catch (const Error& error) {
    return error.code() == Code::exhausted ? DriverResult::out_of_memory
                                           : DriverResult::invalid_image;
  }
}

DriverResult unload(DriverModule module) {
  const std::lock_guard lock(state().mutex);
  if (!state().forget(module)) return DriverResult::invalid_handle;
  for (auto& [name, function] : object(module)->functions) state().forget(function.get());
  delete object(module);
  return DriverResult::success;
}

DriverResult find(DriverFunction* function, DriverModule handle, const char* name) {
  const std::lock_guard lock(state().mutex);
  if (!state().knows(handle)) return DriverResult::invalid_handle;
  ModuleObject& module = *object(handle);
  auto& known = module.functions[name];
  if (!known) {
    const KernelInfo* kernel = module.module->kernel(name);
    if (!kernel) {
      module.functions.erase(name);
      return DriverResult::not_found;
    }
    known = std::make_unique<FunctionObject>(FunctionObject{module.module, kernel, name});
    state().learn(known.get());
  }
  *function = reinterpret_cast<DriverFunction>(known.get());
  return DriverResult::success;
}

FunctionObject* function_of(DriverFunction function) {
  return state().knows(function) ? reinterpret_cast<FunctionObject*>(function) : nullptr;
}

DriverResult get_attribute(int* value, FunctionAttribute attribute, DriverFunction handle) {
  const FunctionObject* function = function_of(handle);
  if (!function) return DriverResult::invalid_handle;
  switch (attribute) {
    case FunctionAttribute::max_threads_per_block:
      *value = static_cast<int>(function->kernel->most_threads);
      break;
    case FunctionAttribute::shared_size_bytes:
      *value = static_cast<int>(function->module->shared().bytes);
      break;
    case FunctionAttribute::max_dynamic_shared_size_bytes:
      *value = function->most_dynamic_bytes;
      break;
    default: *value = 0;
  }
  return DriverResult::success;
}

DriverResult set_attribute(DriverFunction handle, FunctionAttribute attribute, int value) {
  FunctionObject* function = function_of(handle);
  if (!function) return DriverResult::invalid_handle;
  if (attribute != FunctionAttribute::max_dynamic_shared_size_bytes || value < 0 ||
      value > kMostDynamicBytes)
    return DriverResult::invalid_value;
  function->most_dynamic_bytes = value;
  return DriverResult::success;
}

/// The values that a launch's parameters had when it was asked for.
class Parameters {
 public:
  Parameters(const KernelInfo& kernel, void* const* from) {
    size_t bytes = 0;
    for (unsigned i = 0; i < kernel.parameters; ++i) {
      offsets_.push_back(bytes);
      bytes += (kernel.parameter_bytes[i] + 15) / 16 * 16;
    }
    values_.resize(bytes / 8 + 1);
    for (unsigned i = 0; i < kernel.parameters; ++i)
      std::memcpy(at(i), from[i], kernel.parameter_bytes[i]);
  }
  std::vector<void*> pointers() {
    std::vector<void*> all;
    for (unsigned i = 0; i < offsets_.size(); ++i) all.push_back(at(i));
    return all;
  }

 private:
  void* at(unsigned i) { return reinterpret_cast<char*>(values_.data()) + offsets_[i]; }
  std::vector<size_t> offsets_;
  std::vector<uint64_t> values_;
};

DriverResult check_sizes(const FunctionObject& function, const Grid& grid) {
  const Index &blocks = grid.grid, &threads = grid.block;
  if (!blocks.x || !blocks.y || !blocks.z || !threads.x || !threads.y || !threads.z)
    return DriverResult::invalid_value;
  if (blocks.x > 0x7fffffffu || blocks.y > 65535 || blocks.z > 65535)
    return DriverResult::invalid_value;
  if (threads.x > kMostThreads || threads.y > kMostThreads || threads.z > 64 ||
      uint64_t{threads.x} * threads.y * threads.z > kMostThreads)
    return DriverResult::invalid_value;
  if (static_cast<int>(grid.dynamic_bytes) > function.most_dynamic_bytes)
    return DriverResult::invalid_value;
  return grid.threads() > function.kernel->most_threads ? DriverResult::launch_out_of_resources
                                                        : DriverResult::success;
}

DriverResult launch(DriverFunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                    DriverStream stream, void** parameters, void** extra) {
  const FunctionObject* function = function_of(handle);
  if (!function) return DriverResult::invalid_handle;
  if (extra || (!parameters && function->kernel->parameters)) return DriverResult::invalid_value;
  Grid grid{.kernel = function->kernel,
            .grid = {grid_x, grid_y, grid_z},
            .block = {block_x, block_y, block_z},
            .dynamic_bytes = shared_bytes};
  if (const DriverResult result = check_sizes(*function, grid); result != DriverResult::success)
    return result;
  auto values = std::make_shared<Parameters>(*function->kernel, parameters);
  return submit(stream, [grid, values, module = function->module, name = function->name]() mutable {
    std::vector<void*> pointers = values->pointers();
    grid.parameters = pointers.data();
    state().record(run_grid(*module, name, grid, state().memory(), state().pinned()));
    return DriverResult::success;
  });
}

}  // namespace

void fill_launches(DriverApi& api) {
  api.module_load_data = load;
  api.module_unload = unload;
  api.module_get_function = find;
  api.func_get_attribute = get_attribute;
  api.func_set_attribute = set_attribute;
  api.occupancy_max_active_blocks_per_multiprocessor = [](int* blocks, DriverFunction function,
                                                          int block_threads, size_t shared) {
    if (!function_of(function) || block_threads <= 0) return DriverResult::invalid_value;
    const size_t by_shared = shared ? size_t{164 * 1024} / shared : 32;
    *blocks = static_cast<int>(
        std::min<size_t>({32, by_shared, 2048u / static_cast<unsigned>(block_threads)}));
    return DriverResult::success;
  };
  api.launch_kernel = launch;
}

}  // namespace dais::cuda::emulated
