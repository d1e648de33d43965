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

struct Prepared {
  const Node& node;
  const cuda::CudaBackend& backend;
  std::shared_ptr<const cuda::Program> program;
  cuda::Function function;
  std::vector<double> scales;  ///< empty: sizes are given
};

/// As in resize.cu.
struct Tap {
  int index;
  float weight;
};

/// The taps of an axis in the device's memory.
Pass pass_of(const Prepared& made, const AxisTaps& taps) {
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
  const std::string holder = "weights of " + made.node.where();
  return {1, 1, outputs, 1, made.backend.upload(list, holder), made.backend.upload(first, holder)};
}

/// How each axis is resampled; inference has checked the inputs.
std::vector<ResizeAxis> axes_of(const Prepared& made, const Shape& in, const Shape& out) {
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < in.rank(); ++i)
    axes.push_back({.in = in[i],
                    .out = out[i],
                    .scale = static_cast<double>(out[i]) / static_cast<double>(in[i]),
                    .exact_out = static_cast<double>(out[i])});
  const auto& listed = made.node.as<Resize>()->axes;
  for (size_t i = 0; i < made.scales.size(); ++i) {
    const size_t at = listed.empty() ? i : normalize_axis(listed[i], in.rank());
    axes[at].scale = made.scales[i];
    axes[at].exact_out = static_cast<double>(in[at]) * axes[at].scale;
  }
  return axes;
}

class BoundResize : public BoundKernel {
 public:
  BoundResize(std::shared_ptr<const Prepared> made, const Sizes& sizes) : made_(std::move(made)) {
    const auto& attrs = *made_->node.as<Resize>();
    const auto axes = axes_of(*made_, sizes.in[0], sizes.out[0]);
    const size_t element_bytes = dtype_size(made_->node.in[0]->type.dtype);
    std::vector<int64_t> now = sizes.in[0].vector();
    for (size_t i = 0; i < axes.size(); ++i) {
      // One pass at least, so that there is a copy when nothing changes.
      const bool only = i + 1 == axes.size() && passes_.empty();
      if (axes[i].untouched(attrs) && !only) continue;
      Pass pass = pass_of(*made_, any_axis_taps(attrs, axes[i]));
      now[i] = axes[i].out;
      const Shape shape(now);
      pass.outer = shape.elements(0, i);
      pass.in = axes[i].in;
      pass.inner = shape.elements(i + 1, shape.rank());
      passes_.push_back(std::move(pass));
      between_bytes_ =
          std::max(between_bytes_,
                   (static_cast<size_t>(shape.elements()) * element_bytes + 255) / 256 * 256);
    }
    if (passes_.size() < 2) between_bytes_ = 0;
  }
  size_t scratch_bytes() const override { return 2 * between_bytes_; }

  Fault run(const Arguments& arguments) noexcept override {
    const void* from = arguments.in[0];
    auto* scratch = static_cast<char*>(arguments.scratch);
    const float outside = made_->node.as<Resize>()->extrapolation_value;
    for (size_t i = 0; i < passes_.size(); ++i) {
      const Pass& pass = passes_[i];
      const bool last = i + 1 == passes_.size();
      void* to = last ? arguments.out[0] : scratch + i % 2 * between_bytes_;
      const int64_t elements = pass.outer * pass.out * pass.inner;
      const void *taps = pass.taps->address(), *first = pass.first->address();
      if (elements > 0)
        cuda::launch(arguments, made_->function, cuda::grid_of(elements), from, to, taps, first,
                     cuda::size32(pass.outer), cuda::size32(pass.in), cuda::size32(pass.out),
                     cuda::size32(pass.inner), outside);
      from = to;
    }
    return {};
  }

 private:
  std::shared_ptr<const Prepared> made_;
  std::vector<Pass> passes_;
  size_t between_bytes_ = 0;  ///< the largest result between two passes
};

class ResizeKernel : public Kernel {
 public:
  explicit ResizeKernel(std::shared_ptr<const Prepared> made) : made_(std::move(made)) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    constexpr int64_t kMost = int64_t{1} << 31;
    const Shape &in = sizes.in[0], &out = sizes.out[0];
    if (in.elements() == 0 || in.elements() >= kMost || out.elements() >= kMost) return nullptr;
    return std::make_unique<BoundResize>(made_, sizes);
  }

 private:
  std::shared_ptr<const Prepared> made_;
};

bool given(const KernelQuery& query, size_t input) {
  const Tensor* constant = query.constant(input);
  return query.node.has(input) && !(constant && constant->elements() == 0);
}

Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<Resize>();
  if (const Verdict floats = cuda::accepts_floats(query); !floats) return floats;
  const auto fixed = query.in(0).static_shape();
  if (fixed && fixed->elements() == 0) return no("there is nothing to resize");
  if (attrs.coordinate_transformation_mode == "tf_crop_and_resize") return no("cropping");
  if (given(query, 3) && attrs.keep_aspect_ratio_policy != "stretch") return no("proportions kept");
  if (!given(query, 3) && !query.constant(2)) return no("the scales are not constant");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  auto program = cuda::program_of(query, "resize.cu", {cuda::element_option(query.in_dtype(0))});
  const cuda::Function function = program->function("resize_axis");
  auto made =
      std::make_shared<Prepared>(Prepared{query.node,
                                          *static_cast<const cuda::CudaBackend*>(query.backend),
                                          std::move(program),
                                          function,
                                          {}});
  if (given(query, 3)) return std::make_unique<ResizeKernel>(std::move(made));
  const Tensor& scales = *query.constant(2);
  for (int64_t i = 0; i < scales.elements(); ++i)
    made->scales.push_back(static_cast<double>(static_cast<float>(scales.to_double(i))));
  return std::make_unique<ResizeKernel>(std::move(made));
}

}  // namespace

namespace ops {
void register_resize_cuda(Kernels& kernels) {
  kernels.add({.name = "resize/cuda", .op = &Resize::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
