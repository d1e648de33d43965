// Resampling of one axis or two neighbouring ones: sizes and weights are worked out once per
// binding. Nearest elements are copies; linear and cubic filters run row by row: first down the
// outer axis into a row of the input's width, then along it.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/threads.h"
#include "ops/pad/mapped_plan_cpu.h"
#include "ops/resize/resize.h"
#include "ops/resize/resize_loops.h"
#include "ops/resize/taps.h"
#include "runtime/kernel.h"

namespace dais {

#define DAIS_RESIZE(isa)                                                                  \
  namespace isa {                                                                         \
  void blend_rows(const float* const*, const float*, int64_t, int64_t, float*);           \
  void blend_along(const float*, const int32_t*, const float*, int64_t, int64_t, float*); \
  constexpr ResizeLoops resize_table{blend_rows, blend_along};                            \
  }
DAIS_RESIZE(plain)
DAIS_RESIZE(avx2)
DAIS_RESIZE(avx512)
#undef DAIS_RESIZE

const ResizeLoops& resize_loops(Isa isa) {
  return isa >= Isa::avx512 ? avx512::resize_table
         : isa == Isa::avx2 ? avx2::resize_table
                            : plain::resize_table;
}

namespace {

constexpr int64_t kParallelElements = 16384;
constexpr int64_t kMostTaps = 64;

/// How every axis is resampled, for left-out or constant scales and known sizes of the result.
/// Nothing when the result's sizes do not follow from the scales.
std::optional<std::vector<ResizeAxis>> axes_of(const Node& node, const Shape& from,
                                               const Shape& to) {
  const Resize& attrs = *node.as<Resize>();
  std::vector<ResizeAxis> out;
  for (size_t i = 0; i < from.rank(); ++i)
    out.push_back({from[i], to[i], 1, static_cast<double>(to[i])});
  std::vector<int64_t> axes = attrs.axes;
  if (axes.empty())
    for (size_t i = 0; i < from.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Tensor* scales = node.has(2) ? node.in[2]->constant() : nullptr;
  if (scales && scales->elements() == 0) scales = nullptr;
  if (scales && scales->elements() != std::ssize(axes)) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = out[normalize_axis(axes[i], from.rank())];
    if (axis.in == 0) return std::nullopt;
    if (!scales) {
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
      continue;
    }
    const auto scale = static_cast<float>(scales->to_double(static_cast<int64_t>(i)));
    axis.scale = static_cast<double>(scale);
    axis.exact_out = static_cast<double>(axis.in) * axis.scale;
    const auto size = static_cast<int64_t>(static_cast<float>(axis.in) * scale);
    if (size != axis.out) return std::nullopt;
  }
  return out;
}

/// Weights of one axis by tap, and of those by element.
struct Filter {
  int64_t in = 1, out = 1, taps = 0;  ///< without taps the axis stays as it is
  std::vector<int32_t> index;
  std::vector<float> weights;

  static Filter make(const Resize& attrs, const ResizeAxis& axis) {
    const AxisTaps from = make_axis_taps(attrs, axis);
    Filter out{axis.in, axis.out, static_cast<int64_t>(from.first[1]), {}, {}};
    for (int64_t k = 0; k < out.taps; ++k)
      for (size_t i = 0; i + 1 < from.first.size(); ++i) {
        const auto& tap = from.taps[from.first[i] + static_cast<size_t>(k)];
        out.index.push_back(static_cast<int32_t>(tap.index));
        out.weights.push_back(static_cast<float>(tap.weight));
      }
    return out;
  }

  /// The rows and weights of result i that count, for rows of `row` elements; how many there are.
  int64_t pick(int64_t i, const float* x, int64_t row, const float** rows, float* chosen) const {
    int64_t count = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const auto at = static_cast<size_t>(k * out + i);
      if (weights[at] == 0) continue;
      rows[count] = x + index[at] * row;
      chosen[count++] = weights[at];
    }
    if (count == 0) {
      rows[0] = x;
      chosen[count++] = 0;
    }
    return count;
  }
};

/// x as [outer, down.in, along.in, inner].
class BoundResize : public BoundKernel {
 public:
  BoundResize(int64_t outer, Filter down, Filter along, int64_t inner, const ResizeLoops& loops)
      : outer_(outer),
        inner_(inner),
        down_(std::move(down)),
        along_(std::move(along)),
        loops_(loops),
        threads_(team_size()) {}

  size_t scratch_bytes() const override {
    return down_.taps > 0 && along_.taps > 0
               ? static_cast<size_t>(threads_) * sizeof(float) * static_cast<size_t>(line())
               : 0;
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* x = static_cast<const float*>(arguments.in[0]);
    auto* y = static_cast<float*>(arguments.out[0]);
    auto* scratch = static_cast<float*>(arguments.scratch);
    const int64_t lines = outer_ * down_.out, width = along_.out * inner_;
    const int64_t worth = lines * width / kParallelElements;
    const int64_t parts = std::clamp<int64_t>(std::min(worth, lines), 1, threads_);
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i)
          run_line(x + i / down_.out * down_.in * line(), i % down_.out, scratch + part * line(),
                   y + i * width);
    });
    return {};
  }

 private:
  int64_t line() const { return along_.in * inner_; }

  void run_line(const float* x, int64_t i, float* scratch, float* y) const {
    const float* rows[kMostTaps];
    float weights[kMostTaps];
    const float* from = x + i * line();
    if (down_.taps > 0) {
      const int64_t count = down_.pick(i, x, line(), rows, weights);
      const bool copies = count == 1 && weights[0] == 1;
      float* to = along_.taps > 0 ? scratch : y;
      if (!copies)
        loops_.rows(rows, weights, count, line(), to);
      else if (along_.taps == 0)
        std::memcpy(to, rows[0], sizeof(float) * static_cast<size_t>(line()));
      from = copies ? rows[0] : to;
    }
    if (along_.taps == 0) return;
    if (inner_ == 1)
      return loops_.along(from, along_.index.data(), along_.weights.data(), along_.taps, along_.out,
                          y);
    for (int64_t j = 0; j < along_.out; ++j) {
      const int64_t count = along_.pick(j, from, inner_, rows, weights);
      loops_.rows(rows, weights, count, inner_, y + j * inner_);
    }
  }

  int64_t outer_, inner_;
  Filter down_, along_;
  const ResizeLoops& loops_;
  int threads_;
};

class BoundNearest : public BoundKernel {
 public:
  explicit BoundNearest(MappedPlan plan) : plan_(std::move(plan)) {}
  Fault run(const Arguments& arguments) noexcept override {
    plan_.run(arguments.in[0], nullptr, arguments.out[0]);
    return {};
  }

 private:
  MappedPlan plan_;
};

class ResizeKernel : public Kernel {
 public:
  explicit ResizeKernel(const KernelQuery& query)
      : node_(query.node), loops_(resize_loops(query.isa)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto axes = axes_of(node_, sizes.in[0], sizes.out[0]);
    if (!axes) return nullptr;
    return node_.as<Resize>()->mode == "nearest" ? bind_nearest(*axes, sizes.in[0])
                                                 : bind_filters(*axes, sizes.in[0]);
  }

 private:
  std::unique_ptr<BoundKernel> bind_nearest(const std::vector<ResizeAxis>& axes,
                                            const Shape& from) const {
    const Resize& attrs = *node_.as<Resize>();
    IndexMaps maps;
    for (const ResizeAxis& axis : axes) {
      maps.push_back(axis.untouched(attrs) ? std::vector<int64_t>{} : nearest_indices(attrs, axis));
      if (axis.untouched(attrs))
        for (int64_t i = 0; i < axis.out; ++i) maps.back().push_back(i);
    }
    return std::make_unique<BoundNearest>(
        MappedPlan(from, std::move(maps), dtype_size(node_.in[0]->type.dtype)));
  }

  std::unique_ptr<BoundKernel> bind_filters(const std::vector<ResizeAxis>& axes,
                                            const Shape& from) const {
    const Resize& attrs = *node_.as<Resize>();
    std::vector<size_t> touched;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].untouched(attrs)) continue;
      if (axes[i].out == 0 || axes[i].in > std::numeric_limits<int32_t>::max()) return nullptr;
      touched.push_back(i);
    }
    if (touched.empty() || touched.size() > 2) return nullptr;
    if (touched.size() == 2 && touched[1] != touched[0] + 1) return nullptr;
    Filter along = Filter::make(attrs, axes[touched.back()]), down;
    if (touched.size() == 2) down = Filter::make(attrs, axes[touched[0]]);
    if (down.taps > kMostTaps || along.taps > kMostTaps) return nullptr;
    return std::make_unique<BoundResize>(from.elements(0, touched[0]), std::move(down),
                                         std::move(along),
                                         from.elements(touched.back() + 1, from.rank()), loops_);
  }

  const Node& node_;
  const ResizeLoops& loops_;
};

Verdict accepts(const KernelQuery& query) {
  const auto& attrs = query.attrs<Resize>();
  if (attrs.coordinate_transformation_mode == "tf_crop_and_resize") return no("crops");
  if (attrs.keep_aspect_ratio_policy != "stretch") return no("keeps proportions");
  const DType dtype = query.in_dtype(0);
  if (dtype == DType::string || dtype_size(dtype) > 8) return no("elements longer than 8 bytes");
  if (attrs.mode != "nearest" && dtype != DType::f32) return no("a filter on other than f32");
  const bool sizes =
      query.node.has(3) && !(query.constant(3) && query.constant(3)->elements() == 0);
  if (!sizes && !query.constant(2)) return no("scales are known only when running");
  if (sizes && query.node.has(2) && !(query.constant(2) && query.constant(2)->elements() == 0))
    return no("scales beside sizes");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ResizeKernel>(query);
}

}  // namespace

namespace ops {
void register_resize_cpu(Kernels& kernels) {
  kernels.add({.name = "resize/rows", .op = &Resize::op, .accepts = accepts, .prepare = prepare});
}
}  // namespace ops
}  // namespace dais
