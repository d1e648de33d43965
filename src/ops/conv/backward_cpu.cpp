// Gradients of convolutions on oneDNN. The gradient of the input is a transposed convolution with
// the same weights; that of the weights has a primitive of its own. Row-major activations are
// copied to channels-last scratch memory first, as in the forward direction.

#include <mutex>

#include "backends/cpu/onednn.h"
#include "ops/conv/conv.h"
#include "ops/conv/kernels_cpu.h"
#include "ops/conv/relayout_cpu.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

/// An activation in scratch memory in channels-last order, or where it lies.
struct Staged {
  std::optional<Relayout> relayout = {};
  size_t scratch_at = 0;

  const float* read(const void* from, const ConvLoops& loops, std::byte* scratch) const {
    const auto* values = static_cast<const float*>(from);
    if (!relayout) return values;
    auto* copy = reinterpret_cast<float*>(scratch + scratch_at);
    relayout->run(loops, values, copy);
    return copy;
  }
};

class Bound : public BoundKernel {
 public:
  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t add_scratch(size_t bytes) {
    const size_t at = scratch_bytes_;
    scratch_bytes_ += aligned(bytes);
    return at;
  }
  Staged stage(const Shape& shape, bool channels_last) {
    if (channels_last) return {};
    const Relayout copy = to_channels_last(shape);
    if (copy.rows == 1 || copy.columns == 1) return {};
    return {copy, add_scratch(copy.bytes())};
  }

 private:
  size_t scratch_bytes_ = 0;
};

class BoundData : public Bound {
 public:
  Fault run(const Arguments& arguments) noexcept override {
    auto* scratch = static_cast<std::byte*>(arguments.scratch);
    if (!primitive->repack(arguments.in[1], *packed)) return {"oneDNN could not pack weights", 0};
    onednn::Tensors tensors;
    tensors.src = dy.read(arguments.in[0], *loops, scratch);
    tensors.packed = packed.get();
    tensors.scratch = scratch + primitive_at;
    tensors.dst = back ? static_cast<void*>(scratch + dx_at) : arguments.out[0];
    if (!primitive->run(tensors)) return {"oneDNN failed", 0};
    if (back)
      back->run(*loops, static_cast<const float*>(tensors.dst),
                static_cast<float*>(arguments.out[0]));
    return {};
  }

  std::unique_ptr<onednn::Primitive> primitive;
  std::shared_ptr<onednn::Packed> packed;
  const ConvLoops* loops = nullptr;
  Staged dy;
  std::optional<Relayout> back;
  size_t dx_at = 0, primitive_at = 0;
};

class BoundWeights : public Bound {
 public:
  Fault run(const Arguments& arguments) noexcept override {
    auto* scratch = static_cast<std::byte*>(arguments.scratch);
    const float* from = x.read(arguments.in[0], *loops, scratch);
    const float* slopes = dy.read(arguments.in[1], *loops, scratch);
    if (!primitive->run(from, slopes, arguments.out[0], scratch + primitive_at))
      return {"oneDNN failed", 0};
    return {};
  }

  std::unique_ptr<onednn::WeightsGradient> primitive;
  const ConvLoops* loops = nullptr;
  Staged x, dy;
  size_t primitive_at = 0;
};

/// The window of the forward convolution from x to y in oneDNN's terms; nothing for a negative
/// padding, which it does not take.
template <typename S>
std::optional<onednn::Window> window_of(const S& attrs, const Activation& x, const Activation& y) {
  Window window;
  fill_window(window, attrs.kernel_shape, attrs.strides, attrs.dilations, attrs.pads,
              attrs.auto_pad, false);
  onednn::Window out{window.kernel, window.strides, window.dilations, {}, {}};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t begin = window.pad_begin(axis, x.space[axis], y.space[axis]);
    if (begin < 0) return std::nullopt;
    out.pads_begin.push_back(begin);
    out.pads_end.push_back((y.space[axis] - 1) * window.strides[axis] + window.extent(axis) -
                           x.space[axis] - begin);
  }
  return out;
}

class GradientKernel : public Kernel {
 public:
  explicit GradientKernel(const KernelQuery& query)
      : node_(query.node), loops_(conv_loops(query.isa)) {}
  std::string detail() const override {
    const std::lock_guard lock(mutex_);
    return implementation_;
  }

 protected:
  void note(std::string implementation) const {
    const std::lock_guard lock(mutex_);
    implementation_ = std::move(implementation);
  }
  const Node& node_;
  const ConvLoops& loops_;

 private:
  mutable std::mutex mutex_;
  mutable std::string implementation_;
};

class DataKernel : public GradientKernel {
 public:
  using GradientKernel::GradientKernel;
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<ConvBackwardData>();
    const Activation dy(sizes.in[0], attrs.channels_last), dx(sizes.out[0], attrs.channels_last);
    const auto window = window_of(attrs, dx, dy);
    if (!window) return nullptr;
    onednn::DeconvDesc desc;
    fill_sizes(desc, dy, dx, attrs.group);
    desc.out_spatial = dx.space;
    desc.window = *window;
    desc.channels_last = true;
    auto made = onednn::create(desc);
    note(made ? made.primitive->implementation() : made.reason);
    if (!made) return nullptr;
    auto bound = std::make_unique<BoundData>();
    const std::vector<float> empty(static_cast<size_t>(sizes.in[1].elements()), 0.0F);
    bound->packed = made.primitive->pack(empty.data());
    bound->loops = &loops_;
    bound->primitive_at = bound->add_scratch(made.primitive->scratch_bytes());
    bound->primitive = std::move(made.primitive);
    bound->dy = bound->stage(sizes.in[0], attrs.channels_last);
    if (!attrs.channels_last) {
      bound->back = to_row_major(sizes.out[0]);
      bound->dx_at = bound->add_scratch(bound->back->bytes());
    }
    return bound;
  }
};

class WeightsKernel : public GradientKernel {
 public:
  using GradientKernel::GradientKernel;
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const auto& attrs = *node_.as<ConvBackwardWeights>();
    const Activation x(sizes.in[0], attrs.channels_last), dy(sizes.in[1], attrs.channels_last);
    const auto window = window_of(attrs, x, dy);
    if (!window) return nullptr;
    onednn::ConvDesc desc;
    fill_sizes(desc, x, dy, attrs.group);
    desc.window = *window;
    desc.channels_last = true;
    auto made = onednn::create_weights_gradient(desc);
    note(made.primitive ? made.primitive->implementation() : made.reason);
    if (!made.primitive) return nullptr;
    auto bound = std::make_unique<BoundWeights>();
    bound->loops = &loops_;
    bound->primitive_at = bound->add_scratch(made.primitive->scratch_bytes());
    bound->primitive = std::move(made.primitive);
    bound->x = bound->stage(sizes.in[0], attrs.channels_last);
    bound->dy = bound->stage(sizes.in[1], attrs.channels_last);
    return bound;
  }
};

Verdict accepts(const KernelQuery& query) {
  if (!onednn::unavailable().empty()) return no(onednn::unavailable());
  if (query.in_dtype(0) != DType::f32 || query.in_dtype(1) != DType::f32)
    return no("an element type other than f32");
  if (!query.in(0).ranked() || query.in(0).shape->size() > 5) return no("more than three axes");
  return yes();
}

template <typename K>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<K>(query);
}

}  // namespace

void register_conv_backward(Kernels& kernels) {
  kernels.add({.name = "conv_backward_data/onednn",
               .op = &ConvBackwardData::op,
               .isa = Isa::avx2,
               .accepts = accepts,
               .prepare = prepare<DataKernel>});
  kernels.add({.name = "conv_backward_weights/onednn",
               .op = &ConvBackwardWeights::op,
               .isa = Isa::avx2,
               .accepts = accepts,
               .prepare = prepare<WeightsKernel>});
}

}  // namespace dais
