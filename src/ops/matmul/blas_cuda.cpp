#include "ops/matmul/blas_cuda.h"

#include <string>

#include "base/error.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

using cuda::BlasStatus;
using cuda::MatmulAttribute;

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr uint32_t kAlignment = 64;  ///< of the arena's offsets

cuda::BlasEpilogue with_bias(cuda::BlasEpilogue epilogue) {
  return static_cast<cuda::BlasEpilogue>((static_cast<uint32_t>(epilogue) & ~uint32_t{1}) |
                                         static_cast<uint32_t>(cuda::BlasEpilogue::bias));
}

std::exception_ptr failure(const cuda::CublasLtApi& api, BlasStatus status) noexcept try {
  const bool lost = status == BlasStatus::execution_failed;
  return std::make_exception_ptr(Error(lost ? Code::unavailable : Code::internal,
                                       std::string("cuBLASLt: ") + api.get_status_name(status),
                                       "GPU"));
} catch (...) {
  return std::current_exception();
}

}  // namespace

Tensor turned_bytes(const Tensor& matrix) {
  Tensor out(matrix.dtype(), Shape{matrix.shape()[1], matrix.shape()[0]});
  copy_transposed(matrix, {1, 0}, out);
  return out;
}

BlasCall::BlasCall(cuda::Device& device, const BlasProblem& problem)
    : device_(device.shared_from_this()),
      api_(device.tables().cublaslt.api),
      handle_(device.cublaslt()),
      problem_(problem) {}

BlasCall::~BlasCall() {
  if (desc_) api_.desc_destroy(desc_);
  for (const auto layout : {a_, b_, d_})
    if (layout) api_.layout_destroy(layout);
}

std::unique_ptr<BlasCall> BlasCall::find(cuda::Device& device, const BlasProblem& problem) {
  // The constructor is private, so make_unique cannot call it.
  std::unique_ptr<BlasCall> call(new BlasCall(device, problem));
  return call->handle_ && call->describe() && call->choose() ? std::move(call) : nullptr;
}

template <typename Value>
BlasStatus BlasCall::set(MatmulAttribute attribute, const Value& value) {
  return api_.desc_set(desc_, attribute, &value, sizeof value);
}

bool BlasCall::describe() {
  const bool whole = problem_.compute == cuda::BlasCompute::i32;
  bool fine =
      api_.desc_create(&desc_, problem_.compute,
                       whole ? cuda::DataKind::i32 : cuda::DataKind::f32) == BlasStatus::success;
  const auto layout = [&](cuda::MatrixLayout& to, const BlasMatrix& matrix) {
    fine = fine && api_.layout_create(&to, matrix.kind, static_cast<uint64_t>(matrix.rows),
                                      static_cast<uint64_t>(matrix.columns),
                                      matrix.rows) == BlasStatus::success;
    if (problem_.batches == 1) return;
    const auto count = static_cast<int32_t>(problem_.batches);
    const int64_t step = matrix.rows * matrix.columns;
    fine = fine &&
           api_.layout_set(to, cuda::LayoutAttribute::batch_count, &count, sizeof count) ==
               BlasStatus::success &&
           api_.layout_set(to, cuda::LayoutAttribute::batch_stride, &step, sizeof step) ==
               BlasStatus::success;
  };
  layout(a_, problem_.a);
  layout(b_, problem_.b);
  layout(d_, problem_.d);
  const auto tell = [&](MatmulAttribute attribute, const auto& value) {
    fine = fine && set(attribute, value) == BlasStatus::success;
  };
  tell(MatmulAttribute::transpose_a, int32_t{problem_.turn_a});
  tell(MatmulAttribute::transpose_b, int32_t{problem_.turn_b});
  tell(MatmulAttribute::epilogue, problem_.bias ? with_bias(problem_.epilogue) : problem_.epilogue);
  if (problem_.bias) tell(MatmulAttribute::bias_type, problem_.d.kind);
  return fine;
}

bool BlasCall::choose() {
  cuda::MatmulPreference preference = nullptr;
  if (api_.preference_create(&preference) != BlasStatus::success) return false;
  const size_t most = kWorkspaceBytes;
  int found = 0;
  using enum cuda::PreferenceAttribute;
  api_.preference_set(preference, most_workspace_bytes, &most, sizeof most);
  for (const auto attribute : {alignment_a, alignment_b, alignment_c, alignment_d})
    api_.preference_set(preference, attribute, &kAlignment, sizeof kAlignment);
  const BlasStatus status =
      api_.heuristic(handle_, desc_, a_, b_, d_, d_, preference, 1, &choice_, &found);
  api_.preference_destroy(preference);
  return status == BlasStatus::success && found > 0 && choice_.state == BlasStatus::success;
}

void BlasCall::run(cuda::CudaQueue& queue, const BlasOperands& operands) noexcept {
  BlasStatus status = BlasStatus::success;
  const auto point = [&](MatmulAttribute attribute, const void* address) {
    if (address && status == BlasStatus::success) status = set(attribute, address);
  };
  point(MatmulAttribute::bias_pointer, operands.bias);
  point(MatmulAttribute::a_scale_pointer, operands.a_scale);
  point(MatmulAttribute::b_scale_pointer, operands.b_scale);
  const float none = 0;
  const int32_t one = 1, zero = 0;
  const bool whole = problem_.compute == cuda::BlasCompute::i32;
  const void* const alpha = whole ? static_cast<const void*>(&one) : &problem_.alpha;
  const void* const beta = whole ? static_cast<const void*>(&zero) : &none;
  if (status == BlasStatus::success)
    status = api_.matmul(handle_, desc_, alpha, operands.a, a_, operands.b, b_, beta, operands.d,
                         d_, operands.d, d_, &choice_.algorithm, operands.workspace,
                         choice_.workspace_bytes, queue.stream());
  if (status != BlasStatus::success) queue.fail(failure(api_, status));
}

}  // namespace dais
