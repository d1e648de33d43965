#include "backends/cuda/row.h"
#include "ops/optimizer/optimizer.h"

namespace dais {
namespace {

enum : size_t { kAdam, kMomentum, kAdagrad };

/// As in optimizer.cu.
struct AdamRule {
  float alpha, beta, epsilon, norm, norm_post;
};
struct MomentumRule {
  float alpha, beta, norm;
  int nesterov;
};
struct AdagradRule {
  float decay, epsilon, norm;
};

/// Inputs: R, T, then n weights, n gradients and n of each moment; outputs alike from the weights.
/// `moments` of them there are.
template <typename Launch>
void each_tensor(const cuda::RowCall& call, size_t moments, Launch launch) noexcept {
  const size_t n = (call.arguments.in.size() - 2) / (2 + moments);
  for (size_t i = 0; i < n; ++i) {
    const int64_t count = call.sizes.in[2 + i].elements();
    cuda::Grid grid = cuda::grid_of(count % 4 == 0 ? count / 4 : count);
    if (count > 0) launch(i, n, grid, cuda::size32(count));
  }
}

void run_adam(const cuda::RowCall& call) noexcept {
  const auto& a = *call.node.as<Adam>();
  const AdamRule rule{a.alpha, a.beta, a.epsilon, a.norm_coefficient, a.norm_coefficient_post};
  each_tensor(call, 2, [&](size_t i, size_t n, const cuda::Grid& grid, uint32_t count) {
    call.launch(kAdam, grid, call.in(0), call.in(1), call.in(2 + i), call.in(2 + n + i),
                call.in(2 + 2 * n + i), call.in(2 + 3 * n + i), call.out(i), call.out(n + i),
                call.out(2 * n + i), count, rule);
  });
}

void run_momentum(const cuda::RowCall& call) noexcept {
  const auto& a = *call.node.as<Momentum>();
  const MomentumRule rule{a.alpha, a.beta, a.norm_coefficient, a.mode == "nesterov"};
  each_tensor(call, 1, [&](size_t i, size_t n, const cuda::Grid& grid, uint32_t count) {
    call.launch(kMomentum, grid, call.in(0), call.in(1), call.in(2 + i), call.in(2 + n + i),
                call.in(2 + 2 * n + i), call.out(i), call.out(n + i), count, rule);
  });
}

void run_adagrad(const cuda::RowCall& call) noexcept {
  const auto& a = *call.node.as<Adagrad>();
  const AdagradRule rule{a.decay_factor, a.epsilon, a.norm_coefficient};
  each_tensor(call, 1, [&](size_t i, size_t n, const cuda::Grid& grid, uint32_t count) {
    call.launch(kAdagrad, grid, call.in(0), call.in(1), call.in(2 + i), call.in(2 + n + i),
                call.in(2 + 2 * n + i), call.out(i), call.out(n + i), count, rule);
  });
}

Verdict accepts(const KernelQuery& query) {
  for (size_t i = 0; i < query.node.in.size(); ++i)
    if (query.in_dtype(i) != (i == 1 ? DType::i64 : DType::f32))
      return no("an element type other than f32");
  return yes();
}

template <auto run>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "optimizer.cu",
                                        .options = {},
                                        .kernels = {"adam", "momentum", "adagrad"},
                                        .run = run});
}

/// Each weight and moment over its old value: an element is read before it is written.
template <size_t moments>
bool over_itself(const Node& node, size_t output, size_t input) {
  const size_t n = (node.in.size() - 2) / (2 + moments);
  const size_t group = output / n;
  return input == 2 + (group == 0 ? 0 : group + 1) * n + output % n;
}

}  // namespace

namespace ops {
void register_optimizer_cuda(Kernels& kernels) {
  kernels.add({.name = "adam/cuda",
               .op = &Adam::op,
               .accepts = accepts,
               .prepare = prepare<run_adam>,
               .overwrites = over_itself<2>});
  kernels.add({.name = "momentum/cuda",
               .op = &Momentum::op,
               .accepts = accepts,
               .prepare = prepare<run_momentum>,
               .overwrites = over_itself<1>});
  kernels.add({.name = "adagrad/cuda",
               .op = &Adagrad::op,
               .accepts = accepts,
               .prepare = prepare<run_adagrad>,
               .overwrites = over_itself<1>});
}
}  // namespace ops
}  // namespace dais
