#include <cstring>

#include "ops/all_reduce/all_reduce.h"
#include "ops/all_reduce/means.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

Verdict accepts(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("an element type other than f32");
}

std::span<float> moved(const Sizes& sizes, const Arguments& arguments) {
  auto* y = static_cast<float*>(arguments.out[0]);
  const auto count = static_cast<size_t>(sizes.out[0].elements());
  if (y != arguments.in[0] && count > 0) std::memcpy(y, arguments.in[0], count * sizeof(float));
  return {y, count};
}

Fault start(const Node&, const Sizes& sizes, const Arguments& arguments) noexcept {
  start_mean(moved(sizes, arguments));
  return {};
}

Fault finish(const Node&, const Sizes& sizes, const Arguments& arguments) noexcept {
  if (rank_group().size() > 1) rank_group().finish(static_cast<const float*>(arguments.in[0]));
  scale_sum(moved(sizes, arguments));
  return {};
}

Fault both(const Node&, const Sizes& sizes, const Arguments& arguments) noexcept {
  const std::span<float> elements = moved(sizes, arguments);
  start_mean(elements);
  finish_mean(elements);
  return {};
}

template <typename Struct, SimpleRun run>
void add_row(Kernels& kernels, std::string_view name) {
  kernels.add({.name = name,
               .op = &Struct::op,
               .accepts = accepts,
               .prepare = simple<run>,
               .overwrites = first_over_first});
}

}  // namespace

namespace ops {
void register_all_reduce_cpu(Kernels& kernels) {
  add_row<AllReduce, both>(kernels, "all_reduce/ranks");
  add_row<AllReduceStart, start>(kernels, "all_reduce_start/ranks");
  add_row<AllReduceFinish, finish>(kernels, "all_reduce_finish/ranks");
}
}  // namespace ops
}  // namespace dais
