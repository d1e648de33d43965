// Sizes as data: known when sizes are bound.
#include <algorithm>

#include "ops/shape/shape.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

class BoundNumbers : public BoundKernel {
 public:
  explicit BoundNumbers(std::vector<int64_t> numbers) : numbers_(std::move(numbers)) {}
  Fault run(const Arguments& arguments) noexcept override {
    std::copy(numbers_.begin(), numbers_.end(), static_cast<int64_t*>(arguments.out[0]));
    return {};
  }

 private:
  std::vector<int64_t> numbers_;
};

class NumbersKernel : public Kernel {
 public:
  explicit NumbersKernel(const Node& node) : node_(node) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& x = sizes.in[0];
    const auto* shape = node_.as<ShapeOf>();
    if (!shape) return std::make_unique<BoundNumbers>(std::vector<int64_t>{x.elements()});
    const auto [start, end] = shape_window(*shape, x.rank());
    return std::make_unique<BoundNumbers>(std::vector<int64_t>(x.begin() + start, x.begin() + end));
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  return query.in(0).is_tensor() ? yes() : no("is no tensor");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<NumbersKernel>(query.node);
}

}  // namespace

namespace ops {
void register_shape_cpu(Kernels& kernels) {
  for (const Op* op : {&ShapeOf::op, &Size::op})
    kernels.add({.name = "sizes", .op = op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
