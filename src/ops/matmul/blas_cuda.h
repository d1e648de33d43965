#pragma once

#include <memory>
#include <string_view>

#include "backends/cuda/queue.h"

namespace dais {

/// A matrix, or some of one size behind each other, as cuBLASLt counts: column by column.
struct BlasMatrix {
  cuda::DataKind kind = cuda::DataKind::f32;
  int64_t rows = 0, columns = 0;
};

/// d = epilogue(alpha * a * b), where a and b may be turned.
struct BlasProblem {
  cuda::BlasCompute compute = cuda::BlasCompute::f32;
  BlasMatrix a, b, d;
  bool turn_a = false, turn_b = false;
  int64_t batches = 1;
  float alpha = 1;
  cuda::BlasEpilogue epilogue = cuda::BlasEpilogue::none;
  bool bias = false;  ///< of the type of d, one value for each of its rows
};

/// A matrix [depth, columns] of bytes as [columns, depth], as cuBLASLt takes it.
Tensor turned_bytes(const Tensor& matrix);

/// The note of products for whose sizes BlasCall finds nothing.
inline constexpr std::string_view kBlasKnowsNoWay =
    "cuBLASLt knows no way for these sizes: a kernel of dais runs";

/// Addresses on the device. Scales (of 8-bit floats) and the bias may be null.
struct BlasOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void *bias = nullptr, *a_scale = nullptr, *b_scale = nullptr;
  void* workspace = nullptr;
};

/// One product of cuBLASLt with the way that it has chosen; used by one thread at a time.
class BlasCall {
 public:
  /// Null when the library knows no way for the problem. Operands must lie at multiples of 64
  /// bytes.
  static std::unique_ptr<BlasCall> find(cuda::Device& device, const BlasProblem& problem);
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;

  size_t workspace_bytes() const { return choice_.workspace_bytes; }
  /// Puts the product behind the work of the queue; a failure is kept there.
  void run(cuda::CudaQueue& queue, const BlasOperands& operands) noexcept;

 private:
  BlasCall(cuda::Device& device, const BlasProblem& problem);
  bool describe();
  bool choose();
  template <typename Value>
  cuda::BlasStatus set(cuda::MatmulAttribute attribute, const Value& value);

  std::shared_ptr<cuda::Device> device_;
  const cuda::CublasLtApi& api_;
  cuda::BlasHandle handle_;
  BlasProblem problem_;
  cuda::MatmulDesc desc_ = nullptr;
  cuda::MatrixLayout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cuda::MatmulChoice choice_{};
};

}  // namespace dais
