// OneHot: the result is filled with "off", then each index writes one "on".
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/generate/generate.h"
#include "ops/strided.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

template <typename T, typename Index>
class BoundOneHot : public BoundKernel {
 public:
  explicit BoundOneHot(const AxisSplit& split) : split_(split) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const Index*>(arguments.in[0]);
    const auto* values = static_cast<const T*>(arguments.in[2]);
    auto* y = static_cast<T*>(arguments.out[0]);
    const auto [outer, size, inner] = split_;
    const int64_t block = size * inner;
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, block));
    parallel_for(outer, grain, [&, size = size, inner = inner](int64_t first, int64_t last) {
      std::fill(y + first * block, y + last * block, values[0]);
      for (int64_t at = first; at < last; ++at)
        for (int64_t i = 0; i < inner; ++i) {
          auto index = static_cast<int64_t>(indices[at * inner + i]);
          if (index < -size || index >= size) continue;
          index = index < 0 ? index + size : index;
          y[at * block + index * inner + i] = values[1];
        }
    });
    return {};
  }

 private:
  AxisSplit split_;
};

class OneHotKernel : public Kernel {
 public:
  explicit OneHotKernel(const Node& node) : node_(node) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& to = sizes.out[0];
    const AxisSplit split = split_axis(to, normalize_axis(node_.as<OneHot>()->axis, to.rank()));
    if (sizes.in[2].elements() != 2 || to.rank() != sizes.in[0].rank() + 1) return nullptr;
    std::unique_ptr<BoundKernel> bound;
    const bool wide = node_.in[0]->type.dtype == DType::i64;
    const auto make = [&]<typename T>() {
      if (wide)
        bound = std::make_unique<BoundOneHot<T, int64_t>>(split);
      else
        bound = std::make_unique<BoundOneHot<T, int32_t>>(split);
    };
    switch (dtype_size(node_.outs[0]->type.dtype)) {
      case 1: make.template operator()<uint8_t>(); break;
      case 4: make.template operator()<uint32_t>(); break;
      default: make.template operator()<uint64_t>(); break;
    }
    return bound;
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) != DType::i64 && query.in_dtype(0) != DType::i32)
    return no("indices of a rare type");
  const DType out = query.out_dtype();
  if (out == DType::string || is_complex(out) || dtype_size(out) == 2)
    return no("a rare element type");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<OneHotKernel>(query.node);
}

}  // namespace

namespace ops {
void register_generate_cpu(Kernels& kernels) {
  kernels.add({.name = "one_hot/fill", .op = &OneHot::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
