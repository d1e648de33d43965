#include <algorithm>

#include "base/threads.h"
#include "ops/softmax/softmax.h"
#include "ops/strided.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_SOFTMAX_LEVEL(level)                                             \
  namespace level {                                                           \
  void softmax_blocks(const float*, int64_t, int64_t, int64_t, bool, float*); \
  }
DAIS_SOFTMAX_LEVEL(plain)
DAIS_SOFTMAX_LEVEL(avx2)
DAIS_SOFTMAX_LEVEL(avx512)
#undef DAIS_SOFTMAX_LEVEL

namespace {

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::f32) return no("an element type other than f32");
  return query.in(0).ranked() ? yes() : no("the rank is unknown");
}

template <typename S, auto loop>
Fault run(const Node& node, const Sizes& sizes, const Arguments& arguments) noexcept {
  constexpr bool logarithm = std::is_same_v<S, LogSoftmax>;
  const Shape& shape = sizes.in[0];
  const AxisSplit split = split_axis(shape, normalize_axis(node.as<S>()->axis, shape.rank()));
  const int64_t block = split.size * split.inner;
  const auto* x = static_cast<const float*>(arguments.in[0]);
  auto* y = static_cast<float*>(arguments.out[0]);
  parallel_for(split.outer, std::max<int64_t>(1, 4096 / std::max<int64_t>(block, 1)),
               [&](int64_t first, int64_t last) {
                 loop(x + first * block, last - first, split.size, split.inner, logarithm,
                      y + first * block);
               });
  return {};
}

template <auto loop>
void add_rows(Kernels& kernels, Isa isa, std::string_view name, std::string_view log_name) {
  kernels.add({.name = name,
               .op = &Softmax::op,
               .isa = isa,
               .accepts = accepts,
               .prepare = simple<run<Softmax, loop>>,
               .overwrites = first_over_first});
  kernels.add({.name = log_name,
               .op = &LogSoftmax::op,
               .isa = isa,
               .accepts = accepts,
               .prepare = simple<run<LogSoftmax, loop>>,
               .overwrites = first_over_first});
}

}  // namespace

namespace ops {
void register_softmax_cpu(Kernels& kernels) {
  add_rows<plain::softmax_blocks>(kernels, Isa::plain, "softmax/plain", "log_softmax/plain");
  add_rows<avx2::softmax_blocks>(kernels, Isa::avx2, "softmax/avx2", "log_softmax/avx2");
  add_rows<avx512::softmax_blocks>(kernels, Isa::avx512, "softmax/avx512", "log_softmax/avx512");
}
}  // namespace ops
}  // namespace dais
