#pragma once

#include "backends/cuda/queue.h"
#include "backends/cuda/text.h"
#include "dais/precision.h"

namespace dais::cuda {

/// A device with the kernel rows of this build.
class CudaBackend : public Backend {
 public:
  /// `precision` holds for all plans that are made for it; a device may have several backends.
  explicit CudaBackend(std::shared_ptr<Device> device,
                       MatmulPrecision precision = MatmulPrecision::highest);
  const std::string& name() const override { return name_; }
  const Kernels& kernels() const override;
  std::unique_ptr<Queue> open_queue() override;
  size_t free_bytes() const override { return device_->free_bytes(); }
  Device& device() const { return *device_; }
  /// A copy of a tensor in the device's memory.
  std::shared_ptr<DeviceMemory> upload(const Tensor& tensor, const std::string& holder) const;
  MatmulPrecision matmul_precision() const { return precision_; }

 private:
  std::shared_ptr<Device> device_;
  std::string name_;
  const MatmulPrecision precision_;
  mutable std::mutex uploads_mutex_;
  mutable std::unique_ptr<CudaQueue> uploads_;  ///< made at the first use
};

/// For rows: the device that a query asks about.
Device& device_of(const KernelQuery& query);
/// For rows: how far products of f32 may round there.
MatmulPrecision precision_of(const KernelQuery& query);
/// "f32 sums, no TF32", or what products of f32 are rounded to.
std::string precision_text(MatmulPrecision precision);
/// For rows: an embedded kernel text ("softmax.cu") compiled with options for that device.
std::shared_ptr<const Program> program_of(const KernelQuery& query, std::string_view name,
                                          std::vector<std::string> options = {});

/// For rows: a constant of their own on that device.
std::shared_ptr<DeviceMemory> uploaded(const KernelQuery& query, const Tensor& tensor);

/// The GPU rows of this build.
const Kernels& cuda_kernels();

}  // namespace dais::cuda
