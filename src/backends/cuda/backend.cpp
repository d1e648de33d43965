#include "backends/cuda/backend.h"

#include <algorithm>

namespace dais {
void register_all_cuda_kernels(Kernels& kernels);
}

namespace dais::cuda {

CudaBackend::CudaBackend(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      name_(device_->info().hardware
                ? "GPU " + std::to_string(device_->info().ordinal) + ", " + device_->info().name
                : device_->info().name) {}

const Kernels& CudaBackend::kernels() const { return cuda_kernels(); }

std::unique_ptr<Queue> CudaBackend::open_queue() { return std::make_unique<CudaQueue>(device_); }

Device& device_of(const KernelQuery& query) {
  return static_cast<const CudaBackend*>(query.backend)->device();
}

std::shared_ptr<const Program> program_of(const KernelQuery& query, std::string_view name,
                                          std::vector<std::string> options) {
  return device_of(query).program({std::string(name), std::string(text(name)), std::move(options)});
}

std::shared_ptr<DeviceMemory> uploaded(const KernelQuery& query, const Tensor& tensor) {
  CudaQueue queue(device_of(query).shared_from_this());
  auto memory =
      queue.allocate(std::max<size_t>(tensor.bytes(), 1), "weights of " + query.node.where());
  queue.upload(memory->address(), tensor.raw(), tensor.bytes());
  queue.wait();
  return memory;
}

const Kernels& cuda_kernels() {
  static const Kernels kernels = [] {
    Kernels all;
    register_all_cuda_kernels(all);
    return all;
  }();
  return kernels;
}

}  // namespace dais::cuda
