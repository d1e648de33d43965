#include "ops/conv/causal_cuda.h"

#include "backends/cuda/row.h"
#include "ops/conv/conv.h"

namespace dais {
namespace {

enum : size_t { kConv, kState };

/// As in causal.cu.
struct Causal {
  uint32_t rows, channels, length, kept;
};

void run(const cuda::RowCall& call) noexcept {
  const Shape &x = call.sizes.in[0], &w = call.sizes.in[1];
  const Causal causal{cuda::size32(x[0] * x[1]), cuda::size32(x[1]), cuda::size32(x[2]),
                      cuda::size32(w[2] - 1)};
  const int gated = call.node.as<CausalConvWithState>()->activation != "none";
  if (x.elements() > 0)
    call.launch(kConv, cuda::grid_of(x.elements()), call.in(0), call.in(1), call.in(2), call.in(3),
                call.out(0), causal, gated);
  const int64_t kept = x[0] * x[1] * (w[2] - 1);
  if (call.out(1) && kept > 0)
    call.launch(kState, cuda::grid_of(kept), call.in(0), call.in(3), call.out(1), causal);
}

/// What does not fit together is left to the CPU, which says so.
bool takes(const Node& node, const Sizes& sizes) {
  const Shape &x = sizes.in[0], &w = sizes.in[1];
  if (x.rank() != 3 || w.rank() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1) return false;
  if (node.has(2) && sizes.in[2].elements() != x[1]) return false;
  return !node.has(3) || sizes.in[3] == Shape{x[0], x[1], w[2] - 1};
}

Verdict accepts(const KernelQuery& query) {
  for (size_t i = 1; i < query.node.in.size(); ++i)
    if (query.node.has(i) && query.in_dtype(i) != query.in_dtype(0))
      return no("inputs of different types");
  return cuda::accepts_floats(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "causal.cu",
                                        .options = {cuda::element_option(query.in_dtype(0))},
                                        .kernels = {"causal_conv", "causal_state"},
                                        .run = run,
                                        .takes = takes});
}

}  // namespace

void register_causal_cuda(Kernels& kernels) {
  kernels.add({.name = "causal_conv/cuda",
               .op = &CausalConvWithState::op,
               .accepts = accepts,
               .prepare = prepare});
}

}  // namespace dais
