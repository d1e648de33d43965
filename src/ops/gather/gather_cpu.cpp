// Gather by runs: one copy of `inner` adjacent elements per index.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/gather/gather.h"
#include "ops/gather/rows_cpu.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

template <typename Index>
class BoundGather : public BoundKernel {
 public:
  BoundGather(const Node& node, const Sizes& sizes)
      : split_(
            split_axis(sizes.in[0], normalize_axis(node.as<Gather>()->axis, sizes.in[0].rank()))),
        count_(sizes.in[1].elements()),
        bytes_(split_.inner * static_cast<int64_t>(dtype_size(node.in[0]->type.dtype))) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const Index*>(arguments.in[1]);
    for (int64_t i = 0; i < count_; ++i)
      if (indices[i] < -split_.size || indices[i] >= split_.size)
        return {"an index is outside the axis", static_cast<int64_t>(indices[i])};
    if (bytes_ == 0 || count_ == 0) return {};
    const auto* from = static_cast<const std::byte*>(arguments.in[0]);
    auto* to = static_cast<std::byte*>(arguments.out[0]);
    parallel_for(split_.outer * count_, std::max<int64_t>(1, kParallelBytes / bytes_),
                 [&](int64_t first, int64_t last) {
                   if (bytes_ == 4)
                     copy<4>(indices, from, to, first, last);
                   else if (bytes_ == 8)
                     copy<8>(indices, from, to, first, last);
                   else
                     copy<0>(indices, from, to, first, last);
                 });
    return {};
  }

 private:
  /// Runs of `fixed` bytes, or of any number when that is 0.
  template <size_t fixed>
  void copy(const Index* indices, const std::byte* from, std::byte* to, int64_t first,
            int64_t last) const {
    int64_t outer = first / count_, i = first % count_;
    for (int64_t k = first; k < last; ++k) {
      const auto index = static_cast<int64_t>(indices[i]);
      const int64_t row = outer * split_.size + (index < 0 ? index + split_.size : index);
      std::memcpy(to + k * bytes_, from + row * bytes_,
                  fixed != 0 ? fixed : static_cast<size_t>(bytes_));
      if (++i == count_) {
        i = 0;
        ++outer;
      }
    }
  }

  AxisSplit split_;
  int64_t count_, bytes_;
};

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const Node& node) : node_(node) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (node_.in[1]->type.dtype == DType::i64)
      return std::make_unique<BoundGather<int64_t>>(node_, sizes);
    return std::make_unique<BoundGather<int32_t>>(node_, sizes);
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string) return no("strings are no plain elements");
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of a rare type");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<GatherKernel>(query.node);
}

}  // namespace

namespace ops {
void register_gather_cpu(Kernels& kernels) {
  kernels.add({.name = "gather/runs", .op = &Gather::op, .accepts = accepts, .prepare = prepare});
  register_element_gathers(kernels);
}
}  // namespace ops
}  // namespace dais
