#include "backends/cuda/backend.h"

#include <algorithm>

namespace dais {
void register_all_cuda_kernels(Kernels& kernels);
}

namespace dais::cuda {

CudaBackend::CudaBackend(std::shared_ptr<Device> device, MatmulPrecision precision)
    : device_(std::move(device)),
      name_(device_->info().hardware
                ? "GPU " + std::to_string(device_->info().ordinal) + ", " + device_->info().name
                : device_->info().name),
      precision_(precision) {}

const Kernels& CudaBackend::kernels() const { return cuda_kernels(); }

std::unique_ptr<Queue> CudaBackend::open_queue() { return std::make_unique<CudaQueue>(device_); }

Device& device_of(const KernelQuery& query) {
  return static_cast<const CudaBackend*>(query.backend)->device();
}

MatmulPrecision precision_of(const KernelQuery& query) {
  return static_cast<const CudaBackend*>(query.backend)->matmul_precision();
}

std::string precision_text(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::high: return "inputs rounded to TF32, f32 sums";
    case MatmulPrecision::medium: return "inputs rounded to bf16, f32 sums";
    default: return "f32 sums, no TF32";
  }
}

std::shared_ptr<const Program> program_of(const KernelQuery& query, std::string_view name,
                                          std::vector<std::string> options) {
  return device_of(query).program({std::string(name), std::string(text(name)), std::move(options)});
}

std::shared_ptr<DeviceMemory> CudaBackend::upload(const Tensor& tensor,
                                                  const std::string& holder) const {
  const std::lock_guard lock(uploads_mutex_);
  if (!uploads_) uploads_ = std::make_unique<CudaQueue>(device_);
  auto memory = uploads_->allocate(std::max<size_t>(tensor.bytes(), 1), holder);
  if (tensor.bytes() > 0) uploads_->upload(memory->address(), tensor.raw(), tensor.bytes());
  uploads_->wait();
  return memory;
}

std::shared_ptr<DeviceMemory> uploaded(const KernelQuery& query, const Tensor& tensor) {
  return static_cast<const CudaBackend*>(query.backend)
      ->upload(tensor, "weights of " + query.node.where());
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
