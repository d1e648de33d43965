// Convolutions of bf16 activations and their gradients as products on the tile unit: a row of a
// factor is the window of a cell, read where it lies. Weights change from run to run: they are put
// in the order of the windows each time. Where channels are few, a window's rows are its taps: the
// numbers of a row's columns lie side by side once the image has its padding.

#include <algorithm>

#include "backends/cpu/half_gemm.h"
#include "base/threads.h"
#include "ops/conv/conv.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/window.h"

namespace dais {
namespace {

using cpu::half_padded;
using cpu::HalfBlock;
using cpu::HalfWindows;

constexpr int64_t kFewChannels = 16;  ///< of which a tap fills half of what it takes

/// Sizes of a convolution from x to y, channels last.
struct ConvolutionSizes {
  int64_t batch = 1, ins = 1, outs = 1;
  int64_t x[2] = {}, y[2] = {}, kernel[2] = {}, strides[2] = {}, dilations[2] = {};
  int64_t begin[2] = {}, end[2] = {};  ///< padding

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t x_cells() const { return batch * x[0] * x[1]; }
  int64_t y_cells() const { return batch * y[0] * y[1]; }
};

template <typename S>
ConvolutionSizes sizes_of(const S& attrs, const Shape& x, const Shape& y, const Shape& w) {
  Window window;
  std::vector<int64_t> kernel = attrs.kernel_shape;
  if (kernel.empty()) kernel = {w[2], w[3]};
  fill_window(window, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad, false);
  ConvolutionSizes out;
  out.batch = x[0];
  out.ins = x[3];
  out.outs = y[3];
  for (size_t i = 0; i < 2; ++i) {
    out.x[i] = x[i + 1];
    out.y[i] = y[i + 1];
    out.kernel[i] = window.kernel[i];
    out.strides[i] = window.strides[i];
    out.dilations[i] = window.dilations[i];
    out.begin[i] = window.pad_begin(i, out.x[i], out.y[i]);
    out.end[i] = (out.y[i] - 1) * out.strides[i] + window.extent(i) - out.x[i] - out.begin[i];
  }
  return out;
}

/// How windows of x are read: taps of `run` numbers each.
class Reading {
 public:
  explicit Reading(const ConvolutionSizes& s)
      : s_(s), joined_(s.ins < kFewChannels && s.dilations[1] == 1 && s.kernel[1] > 1) {
    for (size_t i = 0; i < 2; ++i) {
      windows_.size[i] = s.x[i];
      windows_.cells[i] = s.y[i];
      windows_.kernel[i] = s.kernel[i];
      windows_.step[i] = s.strides[i];
      windows_.tap_step[i] = s.dilations[i];
      windows_.start[i] = -s.begin[i];
    }
    windows_.pixel = windows_.channels = s.ins;
    if (!joined_) return;
    windows_.channels *= s.kernel[1];
    windows_.kernel[1] = 1;
    windows_.start[1] = 0;
    windows_.size[1] = columns();
  }

  const HalfWindows& windows() const { return windows_; }
  int64_t depth() const { return windows_.taps() * half_padded(windows_.channels); }
  /// Of the image with its padding to the left and right; 0: it is read where it lies.
  size_t image_bytes() const {
    return joined_ ? static_cast<size_t>(s_.batch * s_.x[0] * columns() * s_.ins) * 2 : 0;
  }
  const uint16_t* image(const uint16_t* x, uint16_t* room) const {
    if (!joined_) return x;
    const int64_t left = std::max<int64_t>(s_.begin[1], 0),
                  skip = std::max<int64_t>(-s_.begin[1], 0);
    const int64_t count = std::min(s_.x[1] - skip, columns() - left) * s_.ins;
    parallel_for(s_.batch * s_.x[0], 16, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        uint16_t* to = room + row * columns() * s_.ins;
        std::fill_n(to, columns() * s_.ins, uint16_t{0});
        std::copy_n(x + (row * s_.x[1] + skip) * s_.ins, std::max<int64_t>(count, 0),
                    to + left * s_.ins);
      }
    });
    return room;
  }
  /// Calls each(place in a window, index of weight [channel][tap]) for all numbers of a window.
  template <typename Each>
  void for_each(Each&& each) const {
    const int64_t padded = half_padded(windows_.channels), width = joined_ ? s_.kernel[1] : 1;
    for (int64_t tap = 0; tap < windows_.taps(); ++tap)
      for (int64_t j = 0; j < width; ++j)
        for (int64_t c = 0; c < s_.ins; ++c)
          each(tap * padded + j * s_.ins + c, c * s_.taps() + tap * width + j);
  }
  /// Whether weights lie as windows do.
  bool natural() const { return s_.taps() == 1 && half_padded(s_.ins) == s_.ins; }

 private:
  int64_t columns() const { return s_.x[1] + s_.begin[1] + s_.end[1]; }

  ConvolutionSizes s_;
  bool joined_;
  HalfWindows windows_;
};

const uint16_t* halves(const void* from) { return static_cast<const uint16_t*>(from); }

class BoundHalf : public BoundKernel {
 public:
  explicit BoundHalf(const ConvolutionSizes& sizes) : s_(sizes) {}
  size_t scratch_bytes() const override { return scratch_bytes_; }

 protected:
  size_t add_scratch(size_t bytes) {
    const size_t at = scratch_bytes_;
    scratch_bytes_ += (bytes + 127) / 64 * 64;
    return at;
  }
  static uint16_t* at(const Arguments& arguments, size_t offset) {
    return reinterpret_cast<uint16_t*>(static_cast<std::byte*>(arguments.scratch) + offset);
  }
  ConvolutionSizes s_;

 private:
  size_t scratch_bytes_ = 0;
};

class BoundForward : public BoundHalf {
 public:
  explicit BoundForward(const ConvolutionSizes& sizes)
      : BoundHalf(sizes),
        reading_(sizes),
        image_at_(add_scratch(reading_.image_bytes())),
        weights_at_(add_scratch(static_cast<size_t>(s_.outs * reading_.depth()) * 2)) {}

  Fault run(const Arguments& arguments) noexcept override {
    const int64_t depth = reading_.depth();
    HalfBlock block{.rows = s_.y_cells(), .columns = s_.outs, .depth = depth};
    block.a = {.data = reading_.image(halves(arguments.in[0]), at(arguments, image_at_)),
               .windows = &reading_.windows()};
    block.b = {.data = weights(halves(arguments.in[1]), at(arguments, weights_at_)),
               .line = depth,
               .turned = true};
    if (arguments.in.size() > 2 && arguments.in[2]) block.bias = halves(arguments.in[2]);
    block.c = arguments.out[0];
    block.c_row = s_.outs;
    cpu::half_gemm(block);
    return {};
  }

 private:
  /// [output channel][window]
  const uint16_t* weights(const uint16_t* from, uint16_t* room) const {
    if (reading_.natural()) return from;
    const int64_t depth = reading_.depth(), each = s_.ins * s_.taps();
    parallel_for(s_.outs, 1 + 16384 / depth, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        uint16_t* to = room + o * depth;
        std::fill_n(to, depth, uint16_t{0});
        reading_.for_each(
            [&](int64_t place, int64_t index) { to[place] = from[o * each + index]; });
      }
    });
    return room;
  }

  Reading reading_;
  size_t image_at_, weights_at_;
};

class BoundWeights : public BoundHalf {
 public:
  explicit BoundWeights(const ConvolutionSizes& sizes)
      : BoundHalf(sizes),
        reading_(sizes),
        image_at_(add_scratch(reading_.image_bytes())),
        sums_at_(add_scratch(static_cast<size_t>(s_.outs * reading_.depth()) * 2)) {}

  Fault run(const Arguments& arguments) noexcept override {
    const int64_t depth = reading_.depth();
    HalfBlock block{.rows = s_.outs, .columns = depth, .depth = s_.y_cells()};
    block.a = {.data = halves(arguments.in[1]), .line = s_.outs, .turned = true};
    block.b = {.data = reading_.image(halves(arguments.in[0]), at(arguments, image_at_)),
               .windows = &reading_.windows()};
    block.c = reading_.natural() ? arguments.out[0] : at(arguments, sums_at_);
    block.c_row = depth;
    cpu::half_gemm(block);
    if (!reading_.natural()) reorder(static_cast<uint16_t*>(block.c), arguments.out[0]);
    return {};
  }

 private:
  void reorder(const uint16_t* sums, void* out) const {
    auto* weights = static_cast<uint16_t*>(out);
    const int64_t depth = reading_.depth(), each = s_.ins * s_.taps();
    parallel_for(s_.outs, 1 + 16384 / depth, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        reading_.for_each([&](int64_t place, int64_t index) {
          weights[o * each + index] = sums[o * depth + place];
        });
    });
  }

  Reading reading_;
  size_t image_at_, sums_at_;
};

class BoundData : public BoundHalf {
 public:
  explicit BoundData(const ConvolutionSizes& sizes) : BoundHalf(sizes) {
    for (size_t i = 0; i < 2; ++i) {
      windows_.size[i] = s_.y[i];
      windows_.cells[i] = s_.x[i];
      windows_.kernel[i] = s_.kernel[i];
      windows_.tap_step[i] = -s_.dilations[i];
      windows_.start[i] = s_.begin[i];
      windows_.divide[i] = s_.strides[i];
    }
    windows_.pixel = windows_.channels = s_.outs;
    depth_ = s_.taps() * half_padded(s_.outs);
    weights_at_ = add_scratch(static_cast<size_t>(depth_ * s_.ins) * 2);
  }

  Fault run(const Arguments& arguments) noexcept override {
    HalfBlock block{.rows = s_.x_cells(), .columns = s_.ins, .depth = depth_};
    block.a = {.data = halves(arguments.in[0]), .windows = &windows_};
    block.b = {.data = weights(halves(arguments.in[1]), at(arguments, weights_at_)),
               .line = s_.ins};
    block.c = arguments.out[0];
    block.c_row = s_.ins;
    cpu::half_gemm(block);
    return {};
  }

 private:
  /// [tap][output channel, padded][input channel]
  const uint16_t* weights(const uint16_t* from, uint16_t* room) const {
    const int64_t padded = half_padded(s_.outs), taps = s_.taps(), ins = s_.ins;
    if (taps == 1 && padded == s_.outs) return from;
    parallel_for(padded, 1 + 16384 / (taps * ins), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        for (int64_t tap = 0; tap < taps; ++tap) {
          uint16_t* to = room + (tap * padded + o) * ins;
          for (int64_t c = 0; c < ins; ++c)
            to[c] = o < s_.outs ? from[(o * ins + c) * taps + tap] : uint16_t{0};
        }
    });
    return room;
  }

  HalfWindows windows_;
  int64_t depth_;
  size_t weights_at_;
};

/// Inputs and outputs that hold the sides of a convolution: x, y and the weights.
template <typename S>
struct Sides;
template <>
struct Sides<Conv> {
  using Bound = BoundForward;
  static const Shape& x(const Sizes& s) { return s.in[0]; }
  static const Shape& y(const Sizes& s) { return s.out[0]; }
  static const Shape& w(const Sizes& s) { return s.in[1]; }
};
template <>
struct Sides<ConvBackwardData> {
  using Bound = BoundData;
  static const Shape& x(const Sizes& s) { return s.out[0]; }
  static const Shape& y(const Sizes& s) { return s.in[0]; }
  static const Shape& w(const Sizes& s) { return s.in[1]; }
};
template <>
struct Sides<ConvBackwardWeights> {
  using Bound = BoundWeights;
  static const Shape& x(const Sizes& s) { return s.in[0]; }
  static const Shape& y(const Sizes& s) { return s.in[1]; }
  static const Shape& w(const Sizes& s) { return s.out[0]; }
};

template <typename S>
class HalfKernel : public Kernel {
 public:
  explicit HalfKernel(const KernelQuery& query) : attrs_(query.attrs<S>()) {}
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &x = Sides<S>::x(sizes), &y = Sides<S>::y(sizes), &w = Sides<S>::w(sizes);
    if (!attrs_.channels_last || x.elements() == 0 || y.elements() == 0 || w.elements() == 0)
      return nullptr;
    return std::make_unique<typename Sides<S>::Bound>(sizes_of(attrs_, x, y, w));
  }

 private:
  const S& attrs_;
};

/// Row-major activations are accepted too, as the pass that turns them comes later.
template <typename S>
Verdict accepts(const KernelQuery& query) {
  for (size_t i = 0; i < 2; ++i) {
    if (query.in_dtype(i) != DType::bf16) return no("an element type other than bf16");
    if (query.constant(i)) return no("constant weights");
    if (!query.in(i).ranked() || query.in(i).shape->size() != 4) return no("no two axes");
  }
  if (query.node.has(2) && std::is_same_v<S, Conv> &&
      (query.in_dtype(2) != DType::bf16 || query.constant(2)))
    return no("a constant bias");
  if (query.attrs<S>().group != 1) return no("groups");
  return yes();
}

template <typename S>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<HalfKernel<S>>(query);
}

template <typename S>
void add(Kernels& kernels, std::string_view name) {
  kernels.add({.name = name,
               .op = &S::op,
               .isa = Isa::amx,
               .accepts = accepts<S>,
               .prepare = prepare<S>,
               .priority = 30});
}

}  // namespace

void register_half_conv(Kernels& kernels) {
  add<Conv>(kernels, "conv/half");
  add<ConvBackwardData>(kernels, "conv_backward_data/half");
  add<ConvBackwardWeights>(kernels, "conv_backward_weights/half");
}

}  // namespace dais
