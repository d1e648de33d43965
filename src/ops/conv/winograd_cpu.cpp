// The row around Winograd's loops: which convolutions gain by it, weights transformed once, and the
// work cut into blocks of tiles whose transformed input stays in a core's L2 cache.

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/conv/loop_steps_cpu.h"
#include "ops/conv/winograd_loops.h"
#include "ops/fused/fused.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

constexpr int64_t kCells = kWinogradCells;
constexpr int64_t kBlockBytes = 1 << 20;  ///< of transformed input
constexpr int64_t kFewestTiles = 12;      ///< of a block, when there are as many

using TapTransform = std::array<std::array<double, 3>, 6>;

/// G of F(4, 3), three taps to six values: powers of each point, divided by the product of its
/// distances to the others.
constexpr TapTransform tap_transform() {
  constexpr double a = kWinogradNear, b = kWinogradFar;
  constexpr double near = 2 * a * a * (a * a - b * b), far = 2 * b * b * (b * b - a * a);
  return {{{1 / (a * a * b * b), 0, 0},
           {1 / near, a / near, a * a / near},
           {1 / near, -a / near, a * a / near},
           {1 / far, b / far, b * b / far},
           {1 / far, -b / far, b * b / far},
           {0, 0, 1}}};
}
constexpr TapTransform kTransform = tap_transform();

/// Output channels from `channel` on that are computed together.
struct Chunk {
  int64_t channel, vectors;
  size_t weights_at;
};

std::vector<Chunk> chunks_of(int64_t in_channels, int64_t out_channels) {
  const int64_t vectors = winograd_depth(out_channels) / kWinogradChannels;
  const int64_t count = (vectors + kWinogradVectors - 1) / kWinogradVectors;
  std::vector<Chunk> out;
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = vectors * i / count, last = vectors * (i + 1) / count;
    out.push_back({first * kWinogradChannels, last - first, at});
    at += static_cast<size_t>(kCells * in_channels * (last - first) * kWinogradChannels);
  }
  return out;
}

/// Weights [M, C, 3, 3] as [chunk][cell][C][channels of the chunk], zeros beyond M.
Tensor transformed_weights(const Tensor& w, const std::vector<Chunk>& chunks) {
  const int64_t outs = w.shape()[0], ins = w.shape()[1];
  const Chunk& last = chunks.back();
  const int64_t total =
      static_cast<int64_t>(last.weights_at) + kCells * ins * last.vectors * kWinogradChannels;
  Tensor result(DType::f32, Shape{total});
  std::fill_n(result.data<float>().data(), total, 0.0F);
  const float* taps = w.data<float>().data();
  for (const Chunk& chunk : chunks) {
    const int64_t width = chunk.vectors * kWinogradChannels;
    float* to = result.data<float>().data() + chunk.weights_at;
    for (int64_t k = 0; k < std::min(width, outs - chunk.channel); ++k)
      for (int64_t c = 0; c < ins; ++c) {
        const float* tap = taps + ((chunk.channel + k) * ins + c) * 9;
        double half[6][3];
        for (int i = 0; i < 6; ++i)
          for (int j = 0; j < 3; ++j)
            half[i][j] = kTransform[i][0] * tap[j] + kTransform[i][1] * tap[3 + j] +
                         kTransform[i][2] * tap[6 + j];
        for (int i = 0; i < 6; ++i)
          for (int j = 0; j < 6; ++j)
            to[((i * 6 + j) * ins + c) * width + k] =
                static_cast<float>(half[i][0] * kTransform[j][0] + half[i][1] * kTransform[j][1] +
                                   half[i][2] * kTransform[j][2]);
      }
  }
  return result;
}

class BoundWinograd : public BoundKernel {
 public:
  BoundWinograd(const ConvBody& body, const LoopEpilogue& epilogue, const WinogradSizes& sizes,
                const std::vector<Chunk>& chunks, const float* weights, int threads)
      : body_(body),
        epilogue_(epilogue),
        sizes_(sizes),
        chunks_(chunks),
        weights_(weights),
        threads_(threads),
        steps_(epilogue.size()) {
    const int64_t depth = winograd_depth(sizes.in_channels);
    const int64_t fitting = kBlockBytes / (kCells * depth * static_cast<int64_t>(sizeof(float)));
    const int64_t wanted = std::max(fitting, kFewestTiles);
    int64_t blocks = (sizes.tiles + wanted - 1) / wanted;
    // Every thread gets as many blocks as the others, or a share of the output channels.
    if (blocks > 1) blocks = (blocks + threads - 1) / threads * threads;
    blocks_ = std::min(blocks, sizes.tiles);
    block_ = (sizes.tiles + blocks_ - 1) / blocks_;
    shares_ = blocks_ >= threads ? 1 : std::min<int64_t>(threads, std::ssize(chunks));
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_ * (entered() + multiplied())) * sizeof(float);
  }

  Fault run(const Arguments& arguments) noexcept override {
    const LoopSteps steps = epilogue_.bind(arguments, steps_);
    const auto* x = static_cast<const float*>(arguments.in[static_cast<size_t>(body_.x)]);
    const float* bias = nullptr;
    if (body_.bias >= 0)
      bias = static_cast<const float*>(arguments.in[static_cast<size_t>(body_.bias)]);
    else if (body_.bias_constant())
      bias = static_cast<const float*>(body_.bias_constant()->raw());
    auto* y = static_cast<float*>(arguments.out[0]);
    auto* scratch = static_cast<float*>(arguments.scratch);
    const int64_t tasks = blocks_ * shares_;
    parallel_for(threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        float* own = scratch + thread * (entered() + multiplied());
        for (int64_t task = tasks * thread / threads_; task < tasks * (thread + 1) / threads_;
             ++task)
          run_task(task, x, bias, steps, y, own);
      }
    });
    return {};
  }

 private:
  int64_t entered() const { return kCells * block_ * winograd_depth(sizes_.in_channels); }
  int64_t multiplied() const { return kCells * block_ * kWinogradVectors * kWinogradChannels; }

  void run_task(int64_t task, const float* x, const float* bias, const LoopSteps& steps, float* y,
                float* scratch) const {
    const WinogradLoops& loops = avx512::winograd_loops;
    const int64_t first = task / shares_ * block_, share = task % shares_;
    const int64_t count = std::min(block_, sizes_.tiles - first);
    if (count <= 0) return;
    float* products = scratch + entered();
    loops.enter(sizes_, x, first, count, scratch);
    const int64_t chunks = std::ssize(chunks_);
    for (int64_t i = chunks * share / shares_; i < chunks * (share + 1) / shares_; ++i) {
      const Chunk& chunk = chunks_[static_cast<size_t>(i)];
      loops.multiply(count, winograd_depth(sizes_.in_channels), sizes_.in_channels, chunk.vectors,
                     scratch, weights_ + chunk.weights_at, products);
      loops.leave(sizes_, products, first, count, chunk.channel, chunk.vectors, bias, steps, y);
    }
  }

  const ConvBody& body_;
  const LoopEpilogue& epilogue_;
  WinogradSizes sizes_;
  const std::vector<Chunk>& chunks_;
  const float* weights_;
  int threads_;
  std::vector<LoopStep> steps_;
  int64_t blocks_ = 1, block_ = 1, shares_ = 1;
};

WinogradSizes sizes_of(const ConvBody& body, const Sizes& sizes, const Window& window) {
  const Shape &x = sizes.in[static_cast<size_t>(body.x)], &y = sizes.out[0];
  WinogradSizes out;
  out.height = x[1];
  out.width = x[2];
  out.in_channels = x[3];
  out.out_height = y[1];
  out.out_width = y[2];
  out.out_channels = y[3];
  out.pad_top = window.pad_begin(0, x[1], y[1]);
  out.pad_left = window.pad_begin(1, x[2], y[2]);
  out.dilation_y = window.dilations[0];
  out.dilation_x = window.dilations[1];
  const auto tiles = [](int64_t size, int64_t dilation) {
    const int64_t of_phase = (size + dilation - 1) / dilation;
    return (of_phase + 3) / 4;
  };
  out.tiles_y = tiles(y[1], out.dilation_y);
  out.tiles_x = tiles(y[2], out.dilation_x);
  out.tiles = x[0] * out.tiles_of_example();
  return out;
}

/// Estimates both ways by assumed rates of one core, in operations and bytes per second; the rates
/// are not fitted to measurements.
bool pays(const WinogradSizes& s, int64_t batch) {
  constexpr double rate = 170e9, direct_rate = 150e9, memory = 30e9, transform = 40e9;
  const double ins = static_cast<double>(s.in_channels), outs = static_cast<double>(s.out_channels);
  const double tiles = static_cast<double>(s.tiles);
  const double cells = static_cast<double>(batch * s.out_height * s.out_width);
  const double direct = 18 * cells * ins * outs / direct_rate;
  const double block =
      std::max<double>(kFewestTiles, static_cast<double>(kBlockBytes) / (4 * kCells * ins));
  const double passes = std::max(1.0, tiles / block);
  const double weights = 4 * kCells * ins * outs;
  const double streamed = weights > 1e6 ? weights * passes / memory : 0;
  const double own = 2 * kCells * tiles * ins * outs / rate + 0.5 * streamed +
                     8 * kCells * tiles * (ins + outs) / transform;
  return own < 0.9 * direct;
}

class WinogradKernel : public Kernel {
 public:
  explicit WinogradKernel(const KernelQuery& query)
      : body_(*find_conv_body(query.node).body),
        epilogue_(*LoopEpilogue::make(body_)),
        threads_(query.threads),
        chunks_(chunks_of(body_.weights()->shape()[1], body_.weights()->shape()[0])),
        direct_(accepts_onednn_conv(query) ? prepare_onednn_conv(query) : nullptr) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Window window = conv_window(*body_.conv, body_.weights()->shape());
    const WinogradSizes found = sizes_of(body_, sizes, window);
    const int64_t batch = sizes.out[0][0];
    if (found.tiles <= 0 || !pays(found, batch)) return direct_ ? direct_->bind(sizes) : nullptr;
    std::call_once(transformed_,
                   [&] { weights_ = transformed_weights(*body_.weights(), chunks_); });
    return std::make_unique<BoundWinograd>(body_, epilogue_, found, chunks_,
                                           std::as_const(weights_).data<float>().data(), threads_);
  }

  std::string detail() const override { return direct_ ? direct_->detail() : std::string(); }

 private:
  ConvBody body_;
  LoopEpilogue epilogue_;
  int threads_;
  std::vector<Chunk> chunks_;
  std::unique_ptr<Kernel> direct_;  ///< for sizes where it is faster
  mutable std::once_flag transformed_;
  mutable Tensor weights_;
};

}  // namespace

Verdict accepts_winograd(const KernelQuery& query) {
  const FoundBody found = find_conv_body(query.node);
  if (!found.body) return no(found.reason);
  const ConvBody& body = *found.body;
  if (!body.conv->as<Conv>() || !conv_channels_last(*body.conv) || !body.weights())
    return no("not a channels-last convolution of constant weights");
  const Shape& w = body.weights()->shape();
  if (w.rank() != 4 || w[2] != 3 || w[3] != 3 || conv_group(*body.conv) != 1)
    return no("not a 3x3 window of one group");
  const Window window = conv_window(*body.conv, w);
  if (window.strides != std::vector<int64_t>{1, 1}) return no("a stride above 1");
  if (!LoopEpilogue::make(body)) return no("its loops lack a step");
  const auto x = body.conv->in[0]->type.static_shape();
  const auto y = body.out_type().static_shape();
  // Open sizes are judged when they are bound.
  if (!x || !y) return accepts_onednn_conv(query);
  const Shape in[] = {*x}, out[] = {*y};
  ConvBody first = body;
  first.x = 0;
  if (!pays(sizes_of(first, {in, out}, window), (*x)[0])) return no("the direct way is faster");
  return yes();
}

std::unique_ptr<Kernel> prepare_winograd(const KernelQuery& query) {
  return std::make_unique<WinogradKernel>(query);
}

void register_winograd(Kernels& kernels) {
  const auto add = [&](std::string_view name, const Op& op) {
    kernels.add({.name = name,
                 .op = &op,
                 .isa = Isa::avx512,
                 .accepts = accepts_winograd,
                 .prepare = prepare_winograd,
                 .priority = 10});
  };
  add("conv/winograd", Conv::op);
  add("fused/winograd_conv", Fused::op);
}

}  // namespace dais
