// The user's kernel on the CPU, by the emulated device.
#include <mutex>

#include "backends/cuda/backend.h"
#include "ops/custom/custom.h"
#include "ops/custom/kernel_cuda.h"

namespace dais {
namespace {

/// Opened at the first use; kernels that run unobserved are enough here.
const std::shared_ptr<cuda::CudaBackend>& host_device() {
  static const auto device =
      std::make_shared<cuda::CudaBackend>(cuda::Device::open(cuda::emulated_tables(), 0));
  return device;
}

class BoundOnHost : public BoundKernel {
 public:
  BoundOnHost(std::unique_ptr<BoundKernel> inner, const Sizes& sizes, const Node& node)
      : inner_(std::move(inner)), queue_(host_device()->open_queue()) {
    for (size_t i = 0; i < sizes.in.size(); ++i) take(sizes.in[i], node.in[i]->type.dtype);
    inputs_ = memory_.size();
    for (size_t i = 0; i < sizes.out.size(); ++i) take(sizes.out[i], node.outs[i]->type.dtype);
    for (size_t i = 0; i < memory_.size(); ++i)
      (i < inputs_ ? in_ : out_).push_back(memory_[i]->address());
  }

  Fault run(const Arguments& arguments) noexcept override try {
    for (size_t i = 0; i < inputs_; ++i)
      if (bytes_[i] > 0) queue_->upload(in_[i], arguments.in[i], bytes_[i]);
    std::vector<const void*> in(in_.begin(), in_.end());
    queue_->run(*inner_, {in, out_, nullptr, queue_.get()}, 0);
    for (size_t i = 0; i < out_.size(); ++i)
      if (bytes_[inputs_ + i] > 0) queue_->download(arguments.out[i], out_[i], bytes_[inputs_ + i]);
    queue_->wait();
    return {};
  } catch (const std::exception&) {
    return {"its kernel failed on the emulated device; run with --device emulated to see why", 0};
  }

 private:
  void take(const Shape& shape, DType dtype) {
    bytes_.push_back(static_cast<size_t>(shape.elements()) * dtype_size(dtype));
    memory_.push_back(queue_->allocate(std::max<size_t>(bytes_.back(), 1), "custom operator"));
  }

  std::unique_ptr<BoundKernel> inner_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::shared_ptr<DeviceMemory>> memory_;
  std::vector<size_t> bytes_;
  std::vector<void*> in_, out_;
  size_t inputs_ = 0;
};

class OnHost : public Kernel {
 public:
  OnHost(const Node& node, std::unique_ptr<Kernel> inner) : node_(node), inner_(std::move(inner)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    return std::make_unique<BoundOnHost>(inner_->bind(sizes), sizes, node_);
  }
  std::string detail() const override { return inner_->detail() + " by the emulated device"; }

 private:
  const Node& node_;
  std::unique_ptr<Kernel> inner_;
};

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  KernelQuery there = query;
  there.backend = host_device().get();
  return std::make_unique<OnHost>(query.node, prepare_custom(there));
}

}  // namespace

namespace ops {
void register_custom_cpu(Kernels& kernels) {
  kernels.add({.name = "custom/host",
               .op = &Custom::op,
               .accepts = [](const KernelQuery&) { return yes(); },
               .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
