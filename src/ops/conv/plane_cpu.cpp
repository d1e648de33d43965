// Depthwise convolution of row-major activations, plane by plane: no copy to channels-last order is
// made, as a window needs nothing of other channels.

#include <algorithm>

#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/conv/loop_steps_cpu.h"
#include "ops/conv/plane_loops.h"
#include "ops/fused/fused.h"

namespace dais {

namespace plain {
extern const PlaneLoops plane_loops;
}
namespace avx2 {
extern const PlaneLoops plane_loops;
}
namespace avx512 {
extern const PlaneLoops plane_loops;
}

const PlaneLoops& plane_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::plane_loops;
  return isa == Isa::avx2 ? avx2::plane_loops : plain::plane_loops;
}

namespace {

constexpr int64_t kBandFloats = 4096;  ///< of padded rows, so that they stay in the L1 cache
constexpr int64_t kMostSteps = 8;

/// Steps whose operand is one number in this channel.
LoopSteps steps_of_channel(const LoopSteps& steps, int64_t channel, LoopStep* list) {
  using Kind = LoopStep::Kind;
  for (int64_t i = 0; i < steps.count; ++i) {
    LoopStep step = steps.list[i];
    const float value = step.values ? step.values[channel] : 0;
    if (step.kind == Kind::add_channel) step = {Kind::linear, 1, value, nullptr};
    if (step.kind == Kind::mul_channel) step = {Kind::linear, value, 0, nullptr};
    if (step.kind == Kind::prelu) step = {Kind::leaky, value, 0, nullptr};
    list[i] = step;
  }
  return {list, steps.count};
}

class BoundPlanes : public BoundKernel {
 public:
  BoundPlanes(const ConvBody& body, const LoopEpilogue& epilogue, const PlaneSizes& sizes,
              int64_t batch, int64_t channels, const PlaneLoops& loops, int threads)
      : body_(body),
        epilogue_(epilogue),
        sizes_(sizes),
        planes_(batch * channels),
        channels_(channels),
        loops_(loops),
        steps_(epilogue.size()) {
    const int64_t fixed = sizes.rows_of(1) - sizes.stride_y;
    const int64_t fitting = kBandFloats / std::max<int64_t>(1, sizes.row_floats()) - fixed;
    band_ =
        std::clamp<int64_t>(fitting / sizes.stride_y, 1, std::max<int64_t>(1, sizes.out_height));
    part_floats_ = sizes.rows_of(band_) * sizes.row_floats();
    const double work = static_cast<double>(planes_ * sizes.out_height * sizes.out_width) *
                        static_cast<double>(sizes.kernel_y * sizes.kernel_x);
    parts_ = std::clamp<int64_t>(static_cast<int64_t>(work / 2e5), 1,
                                 std::max<int64_t>(1, std::min<int64_t>(threads, planes_)));
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * part_floats_) * sizeof(float);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const LoopSteps steps = epilogue_.bind(arguments, steps_);
    const auto find = [&](int input, const Tensor* constant) {
      const void* found = input >= 0 ? arguments.in[static_cast<size_t>(input)]
                                     : (constant ? constant->raw() : nullptr);
      return static_cast<const float*>(found);
    };
    const float* x = find(body_.x, nullptr);
    const float* w = find(body_.w, body_.weights());
    const float* bias = find(body_.bias, body_.bias_constant());
    auto* y = static_cast<float*>(arguments.out[0]);
    auto* scratch = static_cast<float*>(arguments.scratch);
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t plane = planes_ * part / parts_; plane < planes_ * (part + 1) / parts_;
             ++plane)
          run_plane(plane, x, w, bias, steps, y, scratch + part * part_floats_);
    });
    return {};
  }

 private:
  void run_plane(int64_t plane, const float* x, const float* w, const float* bias,
                 const LoopSteps& steps, float* y, float* scratch) const {
    const PlaneSizes& s = sizes_;
    const int64_t channel = plane % channels_, element = plane * s.out_height * s.out_width;
    LoopStep list[kMostSteps];
    const LoopSteps own = steps_of_channel(steps, channel, list);
    for (int64_t first = 0; first < s.out_height; first += band_) {
      const int64_t count = std::min(band_, s.out_height - first);
      loops_.enter(s, x + plane * s.height * s.width, first * s.stride_y, s.rows_of(count),
                   scratch);
      loops_.convolve(s, scratch, w + channel * s.kernel_y * s.kernel_x, bias ? bias[channel] : 0,
                      own, first, count, element, y + element);
    }
  }

  const ConvBody& body_;
  const LoopEpilogue& epilogue_;
  PlaneSizes sizes_;
  int64_t planes_, channels_;
  const PlaneLoops& loops_;
  std::vector<LoopStep> steps_;
  int64_t band_ = 1, part_floats_ = 0, parts_ = 1;
};

class PlanesKernel : public Kernel {
 public:
  explicit PlanesKernel(const KernelQuery& query)
      : body_(*find_conv_body(query.node).body),
        epilogue_(*LoopEpilogue::make(body_)),
        loops_(plane_loops(query.isa)),
        threads_(query.threads) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape& x = sizes.in[static_cast<size_t>(body_.x)];
    const Shape& w =
        body_.weights() ? body_.weights()->shape() : sizes.in[static_cast<size_t>(body_.w)];
    const Shape& y = sizes.out[0];
    const Window window = conv_window(*body_.conv, w);
    PlaneSizes s{.height = x[2], .width = x[3], .out_height = y[2], .out_width = y[3]};
    s.kernel_y = window.kernel[0];
    s.kernel_x = window.kernel[1];
    s.stride_y = window.strides[0];
    s.stride_x = window.strides[1];
    s.dilation_y = window.dilations[0];
    s.dilation_x = window.dilations[1];
    s.pad_top = window.pad_begin(0, x[2], y[2]);
    s.pad_left = window.pad_begin(1, x[3], y[3]);
    if (s.pad_top < 0 || s.pad_left < 0) return nullptr;
    return std::make_unique<BoundPlanes>(body_, epilogue_, s, x[0], x[1], loops_, threads_);
  }

 private:
  ConvBody body_;
  LoopEpilogue epilogue_;
  const PlaneLoops& loops_;
  int threads_;
};

Verdict accepts(const KernelQuery& query) {
  const FoundBody found = find_conv_body(query.node);
  if (!found.body) return no(found.reason);
  const Node& conv = *found.body->conv;
  if (!is_depthwise_planes(conv)) return no("not a row-major depthwise convolution of two axes");
  const auto epilogue = LoopEpilogue::make(*found.body);
  if (!epilogue || epilogue->size() > kMostSteps) return no("its loops lack a step");
  return yes();
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<PlanesKernel>(query);
}

}  // namespace

void register_planes(Kernels& kernels) {
  for (const Op* op : {&Conv::op, &Fused::op})
    kernels.add({.name = op == &Fused::op ? "fused/planes_conv" : "conv/planes",
                 .op = op,
                 .isa = Isa::plain,
                 .accepts = accepts,
                 .prepare = prepare,
                 .priority = 10});
}

}  // namespace dais
