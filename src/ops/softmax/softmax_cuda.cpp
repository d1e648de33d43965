#include "backends/cuda/row.h"
#include "ops/softmax/softmax.h"
#include "ops/strided.h"

namespace dais {
namespace {

template <typename S>
void run(const cuda::RowCall& call) noexcept {
  const Shape& shape = call.sizes.in[0];
  const AxisSplit split = split_axis(shape, normalize_axis(call.node.as<S>()->axis, shape.rank()));
  if (shape.elements() == 0) return;
  cuda::launch_lines(call, split.outer, split.size, split.inner);
}

Verdict accepts(const KernelQuery& query) { return cuda::accepts_floats(query); }

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  constexpr bool logarithm = std::is_same_v<S, LogSoftmax>;
  return cuda::make_text_kernel(query, {.text = "softmax.cu",
                                        .options = {cuda::element_option(query.in_dtype(0)),
                                                    logarithm ? "-DLOGARITHM=1" : "-DLOGARITHM=0"},
                                        .kernels = {"softmax_rows", "softmax_columns"},
                                        .run = run<S>});
}

}  // namespace

namespace ops {
void register_softmax_cuda(Kernels& kernels) {
  kernels.add({.name = "softmax/cuda",
               .op = &Softmax::op,
               .accepts = accepts,
               .prepare = prepare<Softmax>});
  kernels.add({.name = "log_softmax/cuda",
               .op = &LogSoftmax::op,
               .accepts = accepts,
               .prepare = prepare<LogSoftmax>});
}
}  // namespace ops
}  // namespace dais
