#include "ops/matmul/float8_cuda.h"

#include <algorithm>

#include "backends/cuda/backend.h"
#include "ops/matmul/blas_cuda.h"
#include "ops/matmul/matmul.h"

namespace dais {
namespace {

constexpr int64_t kMultiple = 16;  ///< of depth and columns, as cuBLASLt takes 8-bit floats
enum : size_t { kA, kB, kScaleA, kScaleB };

std::optional<cuda::DataKind> kind_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn: return cuda::DataKind::f8e4m3;
    case DType::f8e5m2: return cuda::DataKind::f8e5m2;
    default: return std::nullopt;
  }
}

struct Prepared {
  std::shared_ptr<cuda::Device> device;
  std::shared_ptr<DeviceMemory> b;
  cuda::DataKind kind_a = cuda::DataKind::f8e4m3, kind_b = cuda::DataKind::f8e4m3;
  int64_t depth = 0, columns = 0;
  const Tensor* packed = nullptr;  ///< the node's B, which nobody reads
  std::unique_ptr<Kernel> own;     ///< for sizes that the library refuses
};

class BoundFloat8 : public BoundKernel {
 public:
  BoundFloat8(std::shared_ptr<const Prepared> made, std::unique_ptr<BlasCall> call)
      : made_(std::move(made)), call_(std::move(call)) {}
  size_t scratch_bytes() const override { return call_ ? call_->workspace_bytes() : 0; }
  Fault run(const Arguments& arguments) noexcept override {
    if (call_)
      call_->run(*static_cast<cuda::CudaQueue*>(arguments.queue), {.a = made_->b->address(),
                                                                   .b = arguments.in[kA],
                                                                   .d = arguments.out[0],
                                                                   .a_scale = arguments.in[kScaleB],
                                                                   .b_scale = arguments.in[kScaleA],
                                                                   .workspace = arguments.scratch});
    return {};
  }

 private:
  std::shared_ptr<const Prepared> made_;
  std::unique_ptr<BlasCall> call_;  ///< null: there is nothing to do
};

class Float8Kernel : public Kernel {
 public:
  explicit Float8Kernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const int64_t rows = sizes.in[kA].elements() / made_->depth;
    if (rows == 0) return std::make_unique<BoundFloat8>(made_, nullptr);
    auto call = BlasCall::find(*made_->device, {.a = {made_->kind_b, made_->depth, made_->columns},
                                                .b = {made_->kind_a, made_->depth, rows},
                                                .d = {cuda::DataKind::f32, made_->columns, rows},
                                                .turn_a = true});
    if (!call) return with_note(made_->own->bind(sizes), std::string(kBlasKnowsNoWay));
    return std::make_unique<BoundFloat8>(made_, std::move(call));
  }
  bool packs(const Tensor& constant) const override { return &constant == made_->packed; }
  std::string detail() const override { return "8-bit floats by cuBLASLt, sums in f32"; }

 private:
  std::shared_ptr<const Prepared> made_;
};

bool is_one(const Type& type) {
  const auto shape = type.is_tensor() ? type.static_shape() : std::nullopt;
  return type.dtype == DType::f32 && shape && shape->elements() == 1;
}

}  // namespace

Verdict accepts_library_float8(const KernelQuery& query) {
  if (!kind_of(query.in_dtype(kA)) || !kind_of(query.in_dtype(kB)))
    return no("no product of 8-bit floats");
  if (query.in_dtype(kA) == DType::f8e5m2 && query.in_dtype(kB) == DType::f8e5m2)
    return no("cuBLASLt multiplies no e5m2 by e5m2");
  const cuda::Device& device = cuda::device_of(query);
  const auto& report = device.tables().cublaslt.report;
  if (!report.usable()) return no("cuBLASLt " + report.problem);
  if (device.info().arch < 89) return no("the device has no products of 8-bit floats");
  for (size_t i = 4; i < query.node.in.size(); ++i)
    if (query.node.has(i)) return no("a zero point or a bias");
  if (!is_one(query.in(kScaleA)) || !is_one(query.in(kScaleB)))
    return no("scales that are not one f32 for each operand");
  const Tensor* b = query.constant(kB);
  if (!b || b->rank() != 2) return no("cuBLASLt takes them turned, and B is no constant matrix");
  if (std::any_of(b->shape().begin(), b->shape().end(),
                  [](int64_t size) { return size == 0 || size % kMultiple != 0; }))
    return no("cuBLASLt takes 8-bit floats in multiples of 16, not B of " + b->shape().text());
  if (!query.in(kA).ranked() || query.in(kA).shape->empty()) return no("the rank of A");
  return query.out_dtype() == DType::f32 ? yes() : no("results of another element type");
}

std::unique_ptr<Kernel> prepare_library_float8(const KernelQuery& query, const ProductForm& form,
                                               const ByteOperands& with) {
  if (!cuda::device_of(query).cublaslt()) return prepare_bytes(query, form, with);
  auto made = std::make_shared<Prepared>();
  made->device = cuda::device_of(query).shared_from_this();
  made->kind_a = *kind_of(query.in_dtype(kA));
  made->kind_b = *kind_of(query.in_dtype(kB));
  const Tensor& b = *query.constant(kB);
  made->depth = b.shape()[0];
  made->columns = b.shape()[1];
  made->b = cuda::uploaded(query, turned_bytes(b));
  made->packed = &b;
  made->own = prepare_bytes(query, form, with, made->b);
  return std::make_unique<Float8Kernel>(std::move(made));
}

}  // namespace dais
