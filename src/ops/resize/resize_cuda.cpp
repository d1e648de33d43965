#include <algorithm>

#include "backends/cuda/row.h"
#include "ops/resize/resize.h"
#include "ops/resize/taps.h"

namespace dais {
namespace {

/// One axis resampled: [outer, in, inner] to [outer, out, inner].
struct Pass {
  int64_t outer, in, out, inner;
  std::shared_ptr<DeviceMemory> taps, first;
};

struct Plan {
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  std::vector<Pass> passes;
  Shape in, out;
  size_t element_bytes = 4, between_bytes = 0;  ///< the largest result between two passes
  float outside = 0;
};

/// As in resize.cu.
struct Tap {
  int index;
  float weight;
};

class BoundResize : public BoundKernel {
 public:
  explicit BoundResize(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  size_t scratch_bytes() const override { return 2 * plan_->between_bytes; }
  Fault run(const Arguments& arguments) noexcept override {
    const void* from = arguments.in[0];
    auto* scratch = static_cast<char*>(arguments.scratch);
    for (size_t i = 0; i < plan_->passes.size(); ++i) {
      const Pass& pass = plan_->passes[i];
      const bool last = i + 1 == plan_->passes.size();
      void* to = last ? arguments.out[0] : scratch + i % 2 * plan_->between_bytes;
      const int64_t elements = pass.outer * pass.out * pass.inner;
      const void *taps = pass.taps->address(), *first = pass.first->address();
      if (elements > 0)
        cuda::launch(arguments, plan_->function, cuda::grid_of(elements), from, to, taps, first,
                     cuda::size32(pass.outer), cuda::size32(pass.in), cuda::size32(pass.out),
                     cuda::size32(pass.inner), plan_->outside);
      from = to;
    }
    return {};
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

class ResizeKernel : public Kernel {
 public:
  explicit ResizeKernel(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (!(sizes.in[0] == plan_->in) || !(sizes.out[0] == plan_->out)) return nullptr;
    return std::make_unique<BoundResize>(plan_);
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

bool given(const KernelQuery& query, size_t input) {
  const Tensor* constant = query.constant(input);
  return query.node.has(input) && !(constant && constant->elements() == 0);
}

/// How each axis is resampled; inference has checked the inputs.
std::vector<ResizeAxis> axes_of(const KernelQuery& query, const Shape& in, const Shape& out) {
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < in.rank(); ++i)
    axes.push_back({.in = in[i],
                    .out = out[i],
                    .scale = static_cast<double>(out[i]) / static_cast<double>(in[i]),
                    .exact_out = static_cast<double>(out[i])});
  if (given(query, 3)) return axes;
  const auto& listed = query.attrs<Resize>().axes;
  const Tensor& scales = *query.constant(2);
  for (int64_t i = 0; i < scales.elements(); ++i) {
    const size_t at = listed.empty() ? static_cast<size_t>(i)
                                     : normalize_axis(listed[static_cast<size_t>(i)], in.rank());
    axes[at].scale = static_cast<double>(static_cast<float>(scales.to_double(i)));
    axes[at].exact_out = static_cast<double>(in[at]) * axes[at].scale;
  }
  return axes;
}

Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<Resize>();
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  if (!query.in(0).static_shape() || !query.node.outs[0]->type.static_shape())
    return no("sizes are not fixed");
  if (query.in(0).static_shape()->elements() == 0) return no("there is nothing to resize");
  if (attrs.coordinate_transformation_mode == "tf_crop_and_resize") return no("cropping");
  if (given(query, 3) && attrs.keep_aspect_ratio_policy != "stretch") return no("proportions kept");
  if (!given(query, 3) && !query.constant(2)) return no("the scales are not constant");
  return yes();
}

/// The taps of an axis in the device's memory.
Pass pass_of(const KernelQuery& query, const AxisTaps& taps) {
  const auto outputs = static_cast<int64_t>(taps.first.size()) - 1;
  const auto count = static_cast<int64_t>(taps.taps.size());
  Tensor first(DType::i32, Shape{outputs + 1});
  Tensor list(DType::u8, Shape{std::max<int64_t>(count, 1) * static_cast<int64_t>(sizeof(Tap))});
  auto* to = static_cast<Tap*>(list.raw());
  int kept = 0;
  for (size_t o = 0; o + 1 < taps.first.size(); ++o) {
    first.data<int32_t>()[o] = kept;
    // An output outside takes no tap, which the kernel recognises.
    if (taps.outside[o]) continue;
    for (size_t k = taps.first[o]; k < taps.first[o + 1]; ++k)
      to[kept++] = {static_cast<int>(taps.taps[k].index), static_cast<float>(taps.taps[k].weight)};
  }
  first.data<int32_t>()[taps.first.size() - 1] = kept;
  return {1, 1, outputs, 1, cuda::uploaded(query, list), cuda::uploaded(query, first)};
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  const auto& attrs = query.attrs<Resize>();
  auto plan = std::make_shared<Plan>();
  plan->program = cuda::program_of(query, "resize.cu", {cuda::element_option(query.in_dtype(0))});
  plan->function = plan->program->function("resize_axis");
  plan->in = *query.in(0).static_shape();
  plan->out = *query.node.outs[0]->type.static_shape();
  plan->outside = attrs.extrapolation_value;
  plan->element_bytes = dtype_size(query.in_dtype(0));
  const auto axes = axes_of(query, plan->in, plan->out);
  std::vector<int64_t> now = plan->in.vector();
  for (size_t i = 0; i < axes.size(); ++i) {
    // One pass at least, so that there is a copy when nothing changes.
    const bool only = i + 1 == axes.size() && plan->passes.empty();
    if (axes[i].untouched(attrs) && !only) continue;
    Pass pass = pass_of(query, any_axis_taps(attrs, axes[i]));
    now[i] = axes[i].out;
    const Shape shape(now);
    pass.outer = shape.elements(0, i);
    pass.in = axes[i].in;
    pass.inner = shape.elements(i + 1, shape.rank());
    plan->passes.push_back(std::move(pass));
    plan->between_bytes =
        std::max(plan->between_bytes,
                 (static_cast<size_t>(shape.elements()) * plan->element_bytes + 255) / 256 * 256);
  }
  if (plan->passes.size() < 2) plan->between_bytes = 0;
  return std::make_unique<ResizeKernel>(std::move(plan));
}

}  // namespace

namespace ops {
void register_resize_cuda(Kernels& kernels) {
  kernels.add({.name = "resize/cuda", .op = &Resize::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
