// Generated kernels for elementwise functions, casts and fused chains of them. Bound by memory:
// each operand is read once and each result written once, 16 bytes by one thread where rows allow.
#include <array>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/elementwise/generated_cuda.h"
#include "ops/elementwise/row_text_cuda.h"
#include "ops/fused/fused.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr unsigned kThreads = 256;

/// The iteration space with axes merged that all operands walk evenly, the last one first.
struct Axes {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  ///< by operand
};

Axes merge(const Shape& shape, const std::vector<Strides>& operands) {
  Axes out;
  out.strides.resize(operands.size());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    bool even = !out.sizes.empty();
    for (size_t k = 0; k < operands.size() && even; ++k)
      even = operands[k][axis] == out.strides[k].back() * out.sizes.back();
    // The result is dense, so its own rows always continue.
    if (even) {
      out.sizes.back() *= shape[axis];
      continue;
    }
    out.sizes.push_back(shape[axis]);
    for (size_t k = 0; k < operands.size(); ++k) out.strides[k].push_back(operands[k][axis]);
  }
  if (out.sizes.empty()) {
    out.sizes.push_back(1);
    for (auto& strides : out.strides) strides.push_back(0);
  }
  return out;
}

std::vector<std::byte> space_of(const Axes& axes, int64_t total, int width) {
  std::vector<std::span<const int64_t>> outer;
  std::vector<int32_t> inner;
  for (const auto& strides : axes.strides) {
    outer.push_back(std::span<const int64_t>(strides).subspan(1));
    inner.push_back(static_cast<int32_t>(strides[0]));
  }
  return space_bytes(total / width, axes.sizes[0] / width,
                     std::span<const int64_t>(axes.sizes).subspan(1), outer, inner);
}

struct Generated {
  ElementwiseText text;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function narrow, wide;
  TextInputs inputs;
  unsigned most_blocks = 1;
};

class BoundText : public BoundKernel {
 public:
  BoundText(std::shared_ptr<const Generated> made, const Axes& axes, int64_t total)
      : made_(std::move(made)), total_(total) {
    const int width = made_->text.width;
    narrow_ = space_of(axes, total, 1);
    if (width > 1 && axes.sizes[0] % width == 0) wide_ = space_of(axes, total, width);
    for (const auto& strides : axes.strides) repeats_.push_back(strides[0] == 0);
    numbers_ = made_->text.numbers;
    if (numbers_.empty()) numbers_.push_back(0);
    pointers_.resize(made_->text.operands.size() + made_->text.results.size());
    parameters_.resize(pointers_.size() + 2);
  }

  Fault run(const Arguments& arguments) noexcept override {
    if (total_ == 0) return {};
    made_->inputs.collect(arguments, pointers_);
    const bool wide = !wide_.empty() && aligned();
    parameters_[0] = wide ? wide_.data() : narrow_.data();
    parameters_[1] = numbers_.data();
    for (size_t i = 0; i < pointers_.size(); ++i) parameters_[i + 2] = &pointers_[i];
    const int64_t packs = wide ? total_ / made_->text.width : total_;
    const auto threads =
        static_cast<unsigned>(std::min<int64_t>(kThreads, cuda::ceil_div(packs, 32) * 32));
    cuda::Grid grid;
    grid.threads = threads;
    grid.x = static_cast<unsigned>(
        std::min<int64_t>(cuda::ceil_div(packs, threads), made_->most_blocks));
    cuda::launch_raw(*static_cast<cuda::CudaQueue*>(arguments.queue),
                     wide ? made_->wide : made_->narrow, grid, parameters_.data());
    return {};
  }

 private:
  bool aligned() const noexcept {
    const auto& text = made_->text;
    const auto fits = [&](size_t at, DType dtype) {
      const size_t bytes = dtype_size(dtype) * static_cast<size_t>(text.width);
      return reinterpret_cast<uintptr_t>(pointers_[at]) % bytes == 0;
    };
    for (size_t k = 0; k < text.operands.size(); ++k)
      if (!repeats_[k] && !fits(k, text.operands[k].dtype)) return false;
    for (size_t i = 0; i < text.results.size(); ++i)
      if (!fits(text.operands.size() + i, text.results[i])) return false;
    return true;
  }

  std::shared_ptr<const Generated> made_;
  int64_t total_;
  std::vector<std::byte> narrow_, wide_;
  std::vector<char> repeats_;
  std::vector<int64_t> numbers_;
  std::vector<void*> pointers_, parameters_;
};

class TextKernel : public Kernel {
 public:
  explicit TextKernel(std::shared_ptr<const Generated> made) : made_(std::move(made)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& shape = sizes.out[0];
    std::vector<Strides> strides;
    for (const TextOperand& operand : made_->text.operands) {
      const Shape& own = shape_of(operand, sizes);
      if (!follows(own, shape)) return nullptr;
      strides.push_back(broadcast_strides(own, shape));
    }
    const Axes axes = merge(shape, strides);
    constexpr int64_t kMostDivided = int64_t{1} << 31;
    const int64_t total = shape.elements();
    if (axes.sizes.size() > kMostOuter + 1 || (axes.sizes.size() > 1 && total >= kMostDivided))
      return nullptr;
    return std::make_unique<BoundText>(made_, axes, total);
  }
  std::string detail() const override {
    return std::to_string(made_->text.operands.size()) + " read, " +
           std::to_string(made_->text.results.size()) + " written";
  }

 private:
  static bool follows(const Shape& operand, const Shape& shape) {
    if (operand.rank() > shape.rank()) return false;
    const size_t lead = shape.rank() - operand.rank();
    for (size_t axis = 0; axis < operand.rank(); ++axis)
      if (operand[axis] != 1 && operand[axis] != shape[lead + axis]) return false;
    return true;
  }

  std::shared_ptr<const Generated> made_;
};

}  // namespace

Verdict accepts_elementwise_text(const KernelQuery& query) {
  const ElementwiseText text = elementwise_text(query.node);
  return text.reason.empty() ? yes() : no(text.reason);
}

std::unique_ptr<Kernel> prepare_elementwise_text(const KernelQuery& query) {
  auto made = std::make_shared<Generated>();
  made->text = elementwise_text(query.node);
  cuda::Device& device = cuda::device_of(query);
  made->program = device.program({"elementwise", made->text.text});
  made->narrow = made->program->function("pack_1");
  if (made->text.width > 1)
    made->wide = made->program->function(("pack_" + std::to_string(made->text.width)).c_str());
  made->most_blocks = static_cast<unsigned>(device.info().multiprocessors * 32);
  made->inputs = TextInputs(query, made->text.operands);
  return std::make_unique<TextKernel>(std::move(made));
}

namespace ops {

void register_elementwise_cuda(Kernels& kernels) {
  const auto add = [&](const Op& op) {
    kernels.add({.name = "elementwise/cuda",
                 .op = &op,
                 .accepts = accepts_elementwise_text,
                 .prepare = prepare_elementwise_text,
                 .overwrites = any_over_any});
  };
  for (const auto& row : elementwise_rows()) add(*row.op);
  add(Cast::op);
  add(Fused::op);
  kernels.add({.name = "rows/cuda",
               .op = &Fused::op,
               .accepts = accepts_row_text,
               .prepare = prepare_row_text});
}

}  // namespace ops
}  // namespace dais
