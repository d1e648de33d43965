#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/lrn/lrn.h"
#include "ops/strided.h"
#include "ops/window.h"

namespace dais {
namespace {

/// As in lrn.cu.
struct Lrn {
  uint32_t outer, channels, inner, before, after;
  float share, bias, beta;
};

void run(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<LRN>();
  const Shape& x = call.sizes.in[0];
  if (x.elements() == 0) return;
  const AxisSplit split = split_axis(x, channel_axis(x.rank(), attrs.channels_last));
  // No window reaches further than to the other end.
  const int64_t size = std::min(attrs.size, 2 * split.size), before = (size - 1) / 2;
  const Lrn lrn{.outer = cuda::size32(split.outer),
                .channels = cuda::size32(split.size),
                .inner = cuda::size32(split.inner),
                .before = cuda::size32(before),
                .after = cuda::size32(size - 1 - before),
                .share = static_cast<float>(static_cast<double>(attrs.alpha) /
                                            static_cast<double>(attrs.size)),
                .bias = attrs.bias,
                .beta = attrs.beta};
  call.launch(0, cuda::grid_of(x.elements()), call.in(0), call.out(0), lrn);
}

bool takes(const Node&, const Sizes& sizes) { return sizes.in[0].rank() >= 2; }

Verdict accepts(const KernelQuery& query) {
  return query.attrs<LRN>().size >= 1 ? cuda::accepts_floats(query) : no("a window of no channels");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "lrn.cu",
                                        .options = {cuda::element_option(query.in_dtype(0))},
                                        .kernels = {"lrn"},
                                        .run = run,
                                        .takes = takes});
}

}  // namespace

namespace ops {
void register_lrn_cuda(Kernels& kernels) {
  kernels.add({.name = "lrn/cuda", .op = &LRN::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
