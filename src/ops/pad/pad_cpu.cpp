// Padding with one value: the result is filled, then the data is copied into its place. Padding
// that repeats elements: each axis' elements are looked up in a list.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/threads.h"
#include "ops/pad/mapped_plan_cpu.h"
#include "ops/pad/pad.h"
#include "ops/pad/pad_maps.h"
#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

class BoundPad : public BoundKernel {
 public:
  BoundPad(PlannedCopy copy, int64_t elements, size_t size, bool zero)
      : copy_(std::move(copy)), elements_(elements), size_(size), zero_(zero) {}

  Fault run(const Arguments& arguments) noexcept override {
    const void* value = zero_ ? nullptr : arguments.in[2];
    switch (size_) {
      case 1: fill<uint8_t>(value, arguments.out[0]); break;
      case 2: fill<uint16_t>(value, arguments.out[0]); break;
      case 4: fill<uint32_t>(value, arguments.out[0]); break;
      default: fill<uint64_t>(value, arguments.out[0]); break;
    }
    copy_.plan.run(arguments.in[0], copy_.from, arguments.out[0], copy_.to);
    return {};
  }

 private:
  template <typename T>
  void fill(const void* value, void* out) const {
    T element{};
    if (value) std::memcpy(&element, value, sizeof(T));
    T* to = static_cast<T*>(out);
    parallel_for(elements_, int64_t{65536},
                 [&](int64_t first, int64_t last) { std::fill(to + first, to + last, element); });
  }

  PlannedCopy copy_;
  int64_t elements_;
  size_t size_;
  bool zero_;
};

class BoundRepeats : public BoundKernel {
 public:
  explicit BoundRepeats(MappedPlan plan) : plan_(std::move(plan)) {}
  Fault run(const Arguments& arguments) noexcept override {
    plan_.run(arguments.in[0], nullptr, arguments.out[0]);
    return {};
  }

 private:
  MappedPlan plan_;
};

class PadKernel : public Kernel {
 public:
  explicit PadKernel(const KernelQuery& query) : node_(query.node), isa_(query.isa) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto pads = constant_pads(node_, sizes.in[0].rank());
    if (!pads) return nullptr;
    return node_.as<Pad>()->mode == "constant" ? bind_fill(sizes, *pads)
                                               : bind_repeats(sizes, *pads);
  }

 private:
  std::unique_ptr<BoundKernel> bind_repeats(const Sizes& sizes,
                                            const std::vector<int64_t>& pads) const {
    const Shape &from = sizes.in[0], &to = sizes.out[0];
    for (size_t axis = 0; axis < from.rank(); ++axis)
      if (kept_elements(from, pads, axis) <= 0) return nullptr;
    return std::make_unique<BoundRepeats>(
        MappedPlan(from, pad_maps(node_.as<Pad>()->mode, from, to, pads),
                   dtype_size(node_.in[0]->type.dtype)));
  }

  std::unique_ptr<BoundKernel> bind_fill(const Sizes& sizes,
                                         const std::vector<int64_t>& pads) const {
    const Shape &from = sizes.in[0], &to = sizes.out[0];
    if (node_.has(2) && sizes.in[2].elements() != 1) return nullptr;
    const Shape from_strides = strides_of(from), to_strides = strides_of(to);
    Shape space = from;
    int64_t from_start = 0, to_start = 0;
    for (size_t axis = 0; axis < from.rank(); ++axis) {
      space[axis] = std::max<int64_t>(0, kept_elements(from, pads, axis));
      from_start += std::max<int64_t>(0, -pads[axis]) * from_strides[axis];
      to_start += std::max<int64_t>(0, pads[axis]) * to_strides[axis];
    }
    const size_t size = dtype_size(node_.in[0]->type.dtype);
    PlannedCopy copy{.from = from_start,
                     .to = to_start,
                     .plan = CopyPlan(space, size, dense_steps(from), dense_steps(to), isa_)};
    return std::make_unique<BoundPad>(std::move(copy), to.elements(), size, !node_.has(2));
  }

  const Node& node_;
  Isa isa_;
};

Verdict accepts(const KernelQuery& query) {
  if (dtype_size(query.in_dtype(0)) > 8 || query.in_dtype(0) == DType::string)
    return no("elements longer than 8 bytes");
  if (query.node.has(2) && query.in_dtype(2) != query.in_dtype(0))
    return no("a value of another type");
  return accepts_copy<1, 3>(query);
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<PadKernel>(query);
}

}  // namespace

namespace ops {
void register_pad_cpu(Kernels& kernels) {
  kernels.add({.name = "pad/copies", .op = &Pad::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
