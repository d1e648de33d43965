// Channels-last convolution as a product on the tile unit: a row of A is the window of one output
// cell, read where it lies. Bound by the tile unit; for few cells by the stream of weights, for few
// channels by cutting windows up.

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "backends/cpu/gemm.h"
#include "base/file.h"
#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_body.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/fused/fused.h"
#include "ops/window.h"

namespace dais {
namespace {

using cpu::GemmStep;

/// Less depth does not pay for storing sums, fewer channels not for cutting up windows.
constexpr int64_t kFewestCells = 40, kFewestChannels = 128, kLeastDepth = 128;
/// Where Winograd's transform applies, and on one thread: a tile unit that somebody else uses too
/// is slower than FMA then, and there is no other core that could take over.
constexpr int64_t kMostCells = 512, kMostCellsAlone = 128;

/// A step and the input whose values it takes, or -1.
struct ProductStep {
  GemmStep step;
  int operand = -1;
};

/// Appends the steps of a product that do what an epilogue's step does. False: there are none.
bool append_step(const EpilogueStep& step, std::vector<ProductStep>& to) {
  using Kind = GemmStep::Kind;
  const auto add = [&](GemmStep made, int operand = -1) {
    to.push_back({made, operand});
    return true;
  };
  const auto operand = [&](Kind column, Kind tensor) {
    if (step.operand >= 0) return step.whole && add({.kind = tensor}, step.operand);
    return add({.kind = column, .operand = step.channels.data()});
  };
  switch (step.kind) {
    case StepKind::relu: return step.alpha == 0 && add({.kind = Kind::relu});
    case StepKind::clip: return add({.kind = Kind::clip, .value = step.alpha, .high = step.beta});
    case StepKind::linear:
      return add({.kind = Kind::scale, .value = step.alpha}) &&
             add({.kind = Kind::shift, .value = step.beta});
    case StepKind::sigmoid: return add({.kind = Kind::sigmoid});
    case StepKind::swish: return step.alpha == 1 && add({.kind = Kind::silu});
    case StepKind::tanh: return add({.kind = Kind::tanh});
    case StepKind::gelu: return add({.kind = Kind::gelu});
    case StepKind::gelu_tanh: return add({.kind = Kind::gelu_tanh});
    case StepKind::add: return operand(Kind::column, Kind::tensor);
    case StepKind::mul: return operand(Kind::scale_column, Kind::scale_tensor);
    default: return false;
  }
}

std::optional<std::vector<ProductStep>> product_steps(const ConvBody& body) {
  std::vector<ProductStep> out;
  if (body.has_bias()) {
    GemmStep bias{.kind = GemmStep::Kind::column};
    if (body.bias_constant()) bias.operand = static_cast<const float*>(body.bias_constant()->raw());
    out.push_back({bias, body.bias});
  }
  for (const EpilogueStep& step : body.steps)
    if (!append_step(step, out)) return std::nullopt;
  if (std::ssize(out) > cpu::kMaxGemmSteps) return std::nullopt;
  return out;
}

/// Where each tap of each output cell begins in a channels-last image, -1 in the padding: for each
/// tap all cells.
std::vector<int32_t> window_offsets(const Window& window, const Shape& x, const Shape& y) {
  const int64_t top = window.pad_begin(0, x[1], y[1]), left = window.pad_begin(1, x[2], y[2]);
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(window.kernel[0] * window.kernel[1] * y[0] * y[1] * y[2]));
  for (int64_t i = 0; i < window.kernel[0]; ++i)
    for (int64_t j = 0; j < window.kernel[1]; ++j)
      for (int64_t n = 0; n < y[0]; ++n)
        for (int64_t h = 0; h < y[1]; ++h)
          for (int64_t w = 0; w < y[2]; ++w) {
            const int64_t row = h * window.strides[0] + i * window.dilations[0] - top;
            const int64_t column = w * window.strides[1] + j * window.dilations[1] - left;
            const bool inside = row >= 0 && row < x[1] && column >= 0 && column < x[2];
            const int64_t at = ((n * x[1] + row) * x[2] + column) * x[3];
            out.push_back(inside ? static_cast<int32_t>(at) : -1);
          }
  return out;
}

class BoundTiles : public BoundKernel {
 public:
  BoundTiles(const ConvBody& body, std::vector<ProductStep> steps, const Window& window,
             const Sizes& sizes, const cpu::PageMemory& packed)
      : x_(body.x), steps_(std::move(steps)) {
    const Shape &x = sizes.in[static_cast<size_t>(body.x)], &y = sizes.out[0];
    offsets_ = window_offsets(window, x, y);
    block_.windows = offsets_.data();
    block_.tap = x[3];
    block_.rows = y[0] * y[1] * y[2];
    block_.columns = block_.c_row = y[3];
    block_.depth = window.kernel[0] * window.kernel[1] * cpu::window_depth(x[3]);
    cpu::gemm_set_packed(Isa::amx, block_, packed.as<float>());
  }

  Fault run(const Arguments& arguments) noexcept override {
    GemmStep steps[cpu::kMaxGemmSteps];
    cpu::GemmBlock block = block_;
    for (const ProductStep& from : steps_) {
      GemmStep& step = steps[block.step_count++];
      step = from.step;
      if (from.operand >= 0)
        step.operand = static_cast<const float*>(arguments.in[static_cast<size_t>(from.operand)]);
      using Kind = GemmStep::Kind;
      if (step.kind == Kind::tensor || step.kind == Kind::scale_tensor) step.row = block.columns;
    }
    block.steps = steps;
    block.a = static_cast<const float*>(arguments.in[static_cast<size_t>(x_)]);
    block.c = static_cast<float*>(arguments.out[0]);
    cpu::gemm_windows(block);
    return {};
  }

 private:
  int x_;
  std::vector<ProductStep> steps_;
  std::vector<int32_t> offsets_;
  cpu::GemmBlock block_;
};

/// Whether the tile unit is the fastest for these sizes. `winograd`: its transform could do them,
/// which has a quarter of the arithmetic but streams four times the weights.
bool pays(const Shape& x, const Shape& y, bool winograd, int threads) {
  const int64_t cells = y[0] * y[1] * y[2];
  return cells >= kFewestCells && !(winograd && cells > kMostCells) &&
         !(threads == 1 && cells > kMostCellsAlone) &&
         x.elements() <= int64_t{std::numeric_limits<int32_t>::max()};
}

bool sizes_known(const ConvBody& body) {
  return body.conv->in[0]->type.static_shape() && body.out_type().static_shape();
}

class TilesKernel : public Kernel {
 public:
  explicit TilesKernel(const KernelQuery& query)
      : body_(*find_conv_body(query.node).body),
        threads_(query.threads),
        winograd_(static_cast<bool>(accepts_winograd(query))),
        direct_(sizes_known(body_) ? nullptr
                : winograd_        ? prepare_winograd(query)
                                   : prepare_onednn_conv(query)) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    if (!pays(sizes.in[static_cast<size_t>(body_.x)], sizes.out[0], winograd_, threads_))
      return direct_ ? direct_->bind(sizes) : nullptr;
    std::call_once(once_, [&] { pack(*body_.weights()); });
    return std::make_unique<BoundTiles>(body_, *product_steps(body_),
                                        conv_window(*body_.conv, body_.weights()->shape()), sizes,
                                        *packed_);
  }

 private:
  void pack(const Tensor& weights) const {
    const Shape& w = weights.shape();
    const int64_t outs = w[0], ins = w[1], taps = w[2] * w[3], padded = cpu::window_depth(ins);
    const int64_t depth = taps * padded, width = cpu::gemm_panel_columns(Isa::amx);
    packed_ = std::make_unique<cpu::PageMemory>(
        sizeof(float) * static_cast<size_t>(cpu::gemm_packed_floats(Isa::amx, depth, outs)));
    const auto* from = static_cast<const float*>(weights.raw());
    auto* to = packed_->as<float>();
    if (taps == 1 && padded == ins) {
      cpu::gemm_pack(Isa::amx, from, 1, ins, depth, outs, to);
    } else {
      parallel_for((outs + width - 1) / width, 1, [&](int64_t first, int64_t last) {
        std::fill(to + first * depth * width, to + last * depth * width, 0.0F);
        for (int64_t o = first * width; o < std::min(last * width, outs); ++o)
          for (int64_t c = 0; c < ins; ++c)
            for (int64_t t = 0; t < taps; ++t)
              to[(o / width * depth + t * padded + c) * width + o % width] =
                  from[(o * ins + c) * taps + t];
      });
    }
    if (!direct_) MappedFile::release(weights.raw(), weights.bytes());
  }

  ConvBody body_;
  int threads_;
  bool winograd_;
  std::unique_ptr<Kernel> direct_;  ///< for sizes where it is faster
  mutable std::once_flag once_;
  mutable std::unique_ptr<cpu::PageMemory> packed_;
};

Verdict accepts(const KernelQuery& query) {
  const FoundBody found = find_conv_body(query.node);
  if (!found.body) return no(found.reason);
  const ConvBody& body = *found.body;
  if (!body.conv->as<Conv>() || !conv_channels_last(*body.conv) || !body.weights())
    return no("not a channels-last convolution of constant weights");
  const Shape& w = body.weights()->shape();
  if (w.rank() != 4 || conv_group(*body.conv) != 1) return no("not a flat window of one group");
  if (w[0] < kFewestChannels || w[1] * w[2] * w[3] < kLeastDepth ||
      4 * w[1] < 3 * cpu::window_depth(w[1]))
    return no("too few channels for tiles");
  if (!product_steps(body)) return no("products lack a step");
  for (const float value : body.weights()->data<float>())
    if (!std::isfinite(value)) return no("weights that are not finite");
  // Open sizes are judged when they are bound.
  if (!sizes_known(body)) return accepts_onednn_conv(query);
  const bool fast = pays(*body.conv->in[0]->type.static_shape(), *body.out_type().static_shape(),
                         static_cast<bool>(accepts_winograd(query)), query.threads);
  return fast ? yes() : no("the direct way is faster");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<TilesKernel>(query);
}

}  // namespace

void register_tiles(Kernels& kernels) {
  const auto add = [&](std::string_view name, const Op& op) {
    kernels.add({.name = name,
                 .op = &op,
                 .isa = Isa::amx,
                 .accepts = accepts,
                 .prepare = prepare,
                 .priority = 20});
  };
  add("conv/tiles", Conv::op);
  add("fused/tiles_conv", Fused::op);
}

}  // namespace dais
