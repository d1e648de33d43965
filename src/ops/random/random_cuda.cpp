#include <bit>

#include "backends/cuda/row.h"
#include "ops/random/random.h"
#include "ops/random/stepped_dropout.h"

namespace dais {
namespace {

enum : size_t { kUniform, kNormal, kDropout };

uint64_t key_of(float seed) { return std::bit_cast<uint64_t>(static_cast<double>(seed)); }

void run_uniform(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<RandomUniform>();
  const int64_t count = call.sizes.out[0].elements();
  if (count == 0) return;
  const double low = attrs.low, range = static_cast<double>(attrs.high) - low;
  call.launch(kUniform, cuda::grid_of(count), call.out(0), cuda::size32(count), key_of(*attrs.seed),
              uint64_t{0}, low, range);
}

void run_normal(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<RandomNormal>();
  const int64_t count = call.sizes.out[0].elements();
  if (count == 0) return;
  const double mean = attrs.mean, scale = attrs.scale;
  call.launch(kNormal, cuda::grid_of(count), call.out(0), cuda::size32(count), key_of(*attrs.seed),
              uint64_t{0}, mean, scale);
}

void run_dropout(const cuda::RowCall& call) noexcept {
  const auto& attrs = *call.node.as<SteppedDropout>();
  const KeepRule rule(attrs, 0);
  const int64_t count = call.sizes.out[0].elements();
  if (count == 0) return;
  call.launch(kDropout, cuda::grid_of(cuda::ceil_div(count, 4)), call.in(0), call.in(1),
              call.out(0), cuda::size32(count), static_cast<uint64_t>(attrs.seed),
              static_cast<uint64_t>(attrs.stream), rule.limit, rule.scale);
}

/// Without a seed each run has numbers of its own, which the host counts.
template <typename S>
Verdict accepts_seeded(const KernelQuery& query) {
  if (!query.attrs<S>().seed) return no("there is no seed");
  if (!cuda::float_name(query.out_dtype()))
    return no("element type " + std::string(dtype_name(query.out_dtype())));
  return yes();
}

Verdict accepts_dropout(const KernelQuery& query) {
  if (query.in_dtype(1) != DType::i64) return no("a step of another type than i64");
  return cuda::accepts_floats(query);
}

template <auto run>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return cuda::make_text_kernel(query, {.text = "random.cu",
                                        .options = {cuda::element_option(query.out_dtype())},
                                        .kernels = {"uniform", "normal", "stepped_dropout"},
                                        .run = run});
}

}  // namespace

namespace ops {
void register_random_cuda(Kernels& kernels) {
  kernels.add({.name = "random_uniform/cuda",
               .op = &RandomUniform::op,
               .accepts = accepts_seeded<RandomUniform>,
               .prepare = prepare<run_uniform>});
  kernels.add({.name = "random_normal/cuda",
               .op = &RandomNormal::op,
               .accepts = accepts_seeded<RandomNormal>,
               .prepare = prepare<run_normal>});
  kernels.add({.name = "stepped_dropout/cuda",
               .op = &SteppedDropout::op,
               .accepts = accepts_dropout,
               .prepare = prepare<run_dropout>,
               .overwrites = first_over_first});
}
}  // namespace ops
}  // namespace dais
