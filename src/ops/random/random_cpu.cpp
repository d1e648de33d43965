#include <algorithm>

#include "base/threads.h"
#include "ops/random/stepped_dropout.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

Verdict accepts(const KernelQuery& query) {
  return query.in_dtype(0) == DType::f32 ? yes() : no("an element type other than f32");
}

Fault run(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  const auto* x = static_cast<const float*>(arguments.in[0]);
  auto* y = static_cast<float*>(arguments.out[0]);
  const KeepRule rule(*node.as<SteppedDropout>(), *static_cast<const int64_t*>(arguments.in[1]));
  const int64_t count = sizes.in[0].elements();
  parallel_for((count + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const Philox::Block words = rule.random.block(static_cast<uint64_t>(block));
      const int64_t first = block * 4, last = std::min(count, first + 4);
      for (int64_t i = first; i < last; ++i)
        y[i] = words[static_cast<size_t>(i - first)] < rule.limit ? 0 : x[i] * rule.scale;
    }
  });
  return {};
}

}  // namespace

namespace ops {
void register_random_cpu(Kernels& kernels) {
  kernels.add({.name = "stepped_dropout/plain",
               .op = &SteppedDropout::op,
               .accepts = accepts,
               .prepare = simple<run>,
               .overwrites = first_over_first});
}
}  // namespace ops
}  // namespace dais
